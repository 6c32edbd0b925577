"""``partage translate``: rewrites manifests of other systems in the native dialect.

`manifests` finds pods in documents, `native` writes their requests under `partage.dev/`, `claims` writes them as
claims; all are pure. `command` is the command line.
"""
