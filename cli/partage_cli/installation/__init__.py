"""Puts partage on a node of a cluster and takes it away: what `partage node install`, `switch-on` and others do.

From the ground up: `places` and `errors`; `host` is the machine that is changed, `services` who keeps its daemons, and
`programs` runs what is there; `journal` is what was done, and `steps` carry that on after a death at any point. `look`
asks whether the node is fit (`refusals`, pure, says why not), `kubelet` how kubelet is started, and `edits` (pure) how
its files would have to be. `turn` is how the switch stands, and `way_back` (pure) the script that turns it back with
nothing of ours. The steps are in `preparation`, `conversion` and `confirmation`, with `tree`, `canary` and `nodes` for
what they ask; `switch` has them in their order, and `status` tells how it all is. `versions` puts another version in
force, `removal` takes all of it away, and `traces` knows what else lies on a node.
"""
