"""`partage explain`: why a pod is where it is, or is not.

`asking` looks at the cluster as the scheduler does, with the scheduler's own code; `shown` is for people and programs.
"""
