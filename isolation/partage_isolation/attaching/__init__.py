"""The node plugin that puts containers under the broker's limits.

`preparing`, which is pure, says what the broker is asked for a container, and how its answer changes it; `plugin` has
the hooks. The plugin owns no kind and keeps nothing: the broker knows its containers, and collects them by the
runtime's list.
"""

from partage_isolation.attaching.plugin import IsolationNode

__all__ = ["IsolationNode"]
