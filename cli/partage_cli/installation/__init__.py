"""Installs partage on a cluster node and removes it: the code behind `partage node install`, `switch-on` and others.

From the ground up: `places` and `errors`; `host` is the machine that is changed, `services` its service manager, and
`programs` runs commands; `journal` records what was done, and its steps continue after a crash at any point.
`inspection` checks whether the node is fit (`refusals`, pure, has the reasons against it), `kubelet` finds how kubelet
is started, and `edits` (pure) computes the new content of its files. `turn` is the state of the switch, and `way_back`
(pure) the rollback script, which needs no code of ours. The steps are in `preparation`, `conversion` and
`confirmation`, with `tree`, `canary` and `nodes` as their helpers; `switch` runs them in order, and `status` reports
the result. `versions` upgrades to another version; `uninstall` removes everything, after `drain` has evicted the pods
that hold cards. `libraries` are the versions of the preload library on a node.
"""
