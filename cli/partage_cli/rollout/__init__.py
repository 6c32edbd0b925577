"""The roll-out over the fleet: nodes with a label are brought into force one after the other.

`told` is what nodes say, and `order` what is to be done with one and whose turn it is; both are pure. `fleet` reads all
nodes and takes `lease`, by which one works at a time. `installer` is the daemon on each node; `command`, `progress` and
`installer_pods` are ``partage rollout``, which shows how far it is.
"""
