"""The daemon that brings its own node to its own version, and tells the cluster how far it is.

It runs as a container and works on the host below `host`: it puts its own tree there, `deliveries` the public keys and
settings of the cluster, and `host` runs the host's own ``partage node``, which does all the rest.
`reported_node` follows and annotates the Node. `installer` joins them; `service` and `cli` make it a daemon.
"""
