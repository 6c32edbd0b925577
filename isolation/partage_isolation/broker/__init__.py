"""The broker: who lends memory and time of cards to the processes of containers, and keeps the books.

From the pure to the outside: `wire` (packets), `states`, `accounts` and `charges` (one process, what it has of a card,
and what all have), `pieces` (memory that several hold), `containers`; the ledger: `entries` (the one way into the
books), on it `lives` (processes come and go), `lending` (they ask for memory; `freeable`, `verdicts`) and `sharing`,
and `ledger`, which holds them together; `sampling_rules` and `learning` (what NVML's figures mean), `buckets`, `facts`
(what others are told), `terms` (on which cards time is metered). Then files: `rows_file`, `specs`, `folders`, `page`.
Then peers: `processes` (who is at the other end), `sockets`, `sessions` (their conversations), `parking` (questions
that wait a moment), `sampler` (questions to NVML), `leases` (whose turn it is, as `partage_isolation.leasing` decides),
`control` (questions of root). `books` is what the rest of the broker sees of all this.
"""
