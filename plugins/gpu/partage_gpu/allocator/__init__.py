"""The scheduler side of cards: filters and scores nodes for a pod, and chooses its cards.

`cluster` counts what is left of each card, and the tags on it. `plan` derives a pod's asks and whether it may keep
others off, `needs` finds the cards that an ask may have, `bundles` those of them that are close (on `levels`). `trial`
puts asks on the cards of many nodes at once, `placement` goes through a pod's asks, `choice` picks the cards for one
ask, `search` tries all combinations if that fails, `reasons` explains why nothing fits. `policies` score: by
`fragments` of typical `shapes` (given, or learnt by `typical`), by demand for models, by `topology` (`closeness` of
cards); `mix` parses their names, `settings` the environment. `plugin` has the hooks. All modules but `plugin` are pure.
"""

from partage_gpu.allocator.plugin import GpuAllocator
from partage_gpu.allocator.settings import AllocatorSettings
from partage_gpu.allocator.shapes import Shape, popular_shapes

__all__ = ["AllocatorSettings", "GpuAllocator", "Shape", "popular_shapes"]
