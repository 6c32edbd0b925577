"""The node side of cards: puts the granted ones, and no others, into a container.

`settings` says what can be set, `attachment` decides for one container. The own CDI kind needs a spec file on the node:
`spec_file` keeps it, from NVIDIA's own spec (`nvidia_specs` finds and reads it, `own_spec` copies it) or,
where there is none, from what `driver` finds of the installed driver (`minors` the cards), which
`raw` turns into devices and mounts. `stability` tells them what need not be looked at again.
Attaching enforces no promise: memory, share and limit are the isolation plugin's. Nothing is kept for a container, so
nothing is cleaned up after one.
"""

from partage_gpu.node.plugin import GpuNode

__all__ = ["GpuNode"]
