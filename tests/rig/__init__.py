"""The rig: a real Kubernetes and a real runtime on one machine, for tests, demos and people.

`programs` builds the programs once; `machine` changes the host and cleans up; `identity` makes credentials; `control`
is the control plane, `nodes` are machines made of namespaces; `images` and `critest` supply images and conformance
tests; `client` is the API for tests. `Rig` combines them.
"""
