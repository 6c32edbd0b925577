"""``partage translate``: manifests of other systems in our own words.

`manifests` finds pods in documents, `native` writes what a pod asks for under `partage.dev/`, `claims` writes it as
claims; all are pure. `command` has the words and options.
"""
