"""The rig: real Kubernetes and a real runtime on one machine, for tests, demos and people.

`building` makes the programs once; `machine` touches the host and takes everything back; `identity` says who is who;
`control` is the control plane, `nodes` are machines made of namespaces; `images` and `critest` feed them; `talking` is
how tests speak to all this. `Rig` puts them together.
"""
