"""One machine without Kubernetes: containers that share its cards, by the same parts as in a cluster.

`pods` says what a pod is here and reads it from flags or YAML. `setup` makes the machine ready and takes that back.
`manager` is the daemon that places, starts and restarts pods over `runtime`; `wire` is how it is spoken to, and
`commands` is what people type. Nothing is kept but what the container runtime and the keys hold.
"""
