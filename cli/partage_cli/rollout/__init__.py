"""The roll-out over the fleet: nodes with a label are brought into force one after the other.

`told` is what nodes say, `order` whose turn it is, `errand` what is to be done with one node; all three are pure.
`slots` are the Leases by which no more than a few work at once. `installer` is the daemon on each node; `command` and
`shown` are ``partage rollout``, which shows how far it is.
"""
