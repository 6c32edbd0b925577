"""`partage drain --dry-run NODE`: which pods with cards would leave a node, and whether they fit elsewhere now.

`question` looks at the cluster and decides with the scheduler's own code; `eviction` reads what made a pod and makes
its successor; `shown` is for people and programs.
"""
