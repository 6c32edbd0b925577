"""The fleet roll-out: installs partage on labelled nodes, one after the other.

`node_state` is what nodes report, and `order` decides what to do with a node and whose turn it is; both are pure.
`fleet` reads all nodes and takes `lease`, which lets one node work at a time. `installer` is the daemon on each node;
`command` and `progress` (pure) are ``partage rollout``, which shows the progress.
"""
