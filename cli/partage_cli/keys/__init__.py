"""`partage keys`: the keys that sign allocations, and the extender's certificates, in files or in a cluster.

For files, `command` has the subcommands, and `partage_base.keyring` does the work; for a cluster, `in_cluster` has
them. `provision` creates what is missing, `rotation` replaces a key and retires it; they write through `store`, with
the one account that may (`account`). `objects`, `certificates` and `trust` define the objects' content, and are pure.
"""
