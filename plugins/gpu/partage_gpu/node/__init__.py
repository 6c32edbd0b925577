"""The node side of cards: attaches the granted ones, and no others, to a container.

`settings` defines the settings, `attachment` decides for one container. The own CDI kind needs a spec file on the node:
`spec_file` maintains it, from NVIDIA's own spec (`nvidia_specs` finds and reads it, `own_spec` copies it) or, if there
is none, from what `driver` finds of the installed driver (`minors` the cards), which `raw` turns into devices and
mounts. `stability` tells them which files have not changed.

Attaching enforces no promise: the isolation plugin enforces memory, share and limit. No state is kept for a container,
so nothing is cleaned up after one.
"""

from partage_gpu.node.plugin import GpuNode

__all__ = ["GpuNode"]
