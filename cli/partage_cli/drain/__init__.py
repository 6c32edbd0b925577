"""`partage drain --dry-run NODE`: which pods with cards would leave a node, and whether they fit elsewhere now.

`question` reads the cluster and decides with the scheduler's own code; `eviction` finds a pod's owner and builds its
replacement; `shown` formats the result for people and programs.
"""
