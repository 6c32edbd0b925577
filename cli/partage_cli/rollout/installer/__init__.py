"""The daemon that brings its own node to its own version, and reports the progress to the cluster.

It runs as a container and works on the host below `host`: it copies its own tree there, `deliveries` the cluster's
public keys and settings, and `host` runs the host's own ``partage node``, which does all the rest. `reported_node`
watches and annotates the Node. `installer` combines them; `service` and `cli` make it a daemon.
"""
