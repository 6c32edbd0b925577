"""The scheduler side of cards: which nodes a pod fits on, how good each is, and which cards it gets.

`cluster` counts what is left of each card, `tags` which cards carry which tags. `plan` says what a pod asks for and
whether it may keep others off, `needs` which cards it may have, `bundles` which of them lie close (on `levels`).
`trial` puts asks on the cards of many nodes at once, `placement` goes through a pod's asks, `choice` picks the cards
for one, `search` tries all ways where that fails, `reasons` says why nothing fits. `policies` judge: by `fragments` of
typical `shapes` (given, or learnt by `typical`), by demand for models, by `topology` (`closeness` of cards); `mix`
reads their names, `settings` the environment. `plugin` has the hooks. All of it but `plugin` is pure.
"""

from partage_gpu.allocator.plugin import GpuAllocator
from partage_gpu.allocator.settings import AllocatorSettings
from partage_gpu.allocator.shapes import Shape, popular_shapes

__all__ = ["AllocatorSettings", "GpuAllocator", "Shape", "popular_shapes"]
