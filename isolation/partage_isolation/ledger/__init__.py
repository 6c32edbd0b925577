"""The ledger: what each process of each container was lent of each card. Pure: no clock, no file, no socket."""
