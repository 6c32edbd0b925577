"""The scheduler side of cards: which nodes a pod fits on, how good each is, and which cards it gets.

`cluster` counts what is left of each card; `usage` says what an allocation uses, `tagging` which cards have which tags.
`plan` says what a pod asks for, `exclusion` whether it may keep others off, and `needs` which cards it may have.
`trial` puts asks on the cards of many nodes at once, `placing` goes through a pod's asks, `choosing` picks the cards
for one, `searching` tries all ways where that fails, `reasons` says why nothing fits. `policies` judge: by `fragments`
of typical `shapes` (given, or by `learning`), by `demand` for models, by `topology` (`closeness` of cards); `mixing`
reads their names, `settings` the environment. `plugin` has the hooks. All of it but `plugin` is pure.
"""

from partage_plugins.builtin.gpu_allocator.plugin import GpuAllocator
from partage_plugins.builtin.gpu_allocator.settings import AllocatorSettings
from partage_plugins.builtin.gpu_allocator.shapes import Shape, popular_shapes

__all__ = ["AllocatorSettings", "GpuAllocator", "Shape", "popular_shapes"]
