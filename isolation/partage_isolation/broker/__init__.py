"""The broker: who lends memory of cards to the processes of containers, and keeps the books.

From the pure to the outside: `wire` (packets), `states` and `accounts` (one process, and what it has of one card),
`ledger` (all of them, and what is decided), `sampling_rules` and `learning` (what NVML's figures mean), `buckets`,
`facts` (what others are told). Then files: `rows_file`, `specs`, `folders`, `page`. Then peers: `processes` (who is at
the other end), `sockets`, `sessions` (their conversations), `parking` (questions that wait a moment), `sampler`
(questions to NVML), `control` (questions of root). `books` is what the rest of the broker sees of all this.
"""
