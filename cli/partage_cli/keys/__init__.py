"""`partage keys`: the keys that sign allocations, and the extender's certificates; as files, or in a cluster.

For files `command` has the words, and `partage_base.keyring` does it. In a cluster `in_cluster` has the words.
`provision` makes what is missing, `rotation` puts a key in another's place and takes it back; they write by `store`,
as the one account that may (`account`). What the objects hold is said in `objects`, `certificates` and `trust`, pure.
"""
