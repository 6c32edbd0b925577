"""`partage explain`: why a pod is where it is, or is unschedulable.

`question` reads the cluster with the scheduler's own code; `shown` formats the answer for people and programs.
"""
