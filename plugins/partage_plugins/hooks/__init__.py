"""The hooks that plugins implement: one module for each side, one function with its contract for each hook.

`@hookimpl` marks an implementation. A plugin is a class without constructor arguments, named by an entry point in the
group `partage.scheduler` or `partage.node`; the host creates the instance.
"""

from partage_plugins.hooks.markers import NODE_GROUP, PROJECT, SCHEDULER_GROUP, hookimpl, hookspec

__all__ = ["NODE_GROUP", "PROJECT", "SCHEDULER_GROUP", "hookimpl", "hookspec"]
