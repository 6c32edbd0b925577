"""The ledger: each process's quota of each card's memory. Pure: no clock, no file, no socket."""
