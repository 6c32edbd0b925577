"""The hooks that plugins implement: one module for each side, one function for each hook, with its contract.

`@hookimpl` marks an implementation. A plugin is a class without arguments, named by an entry point in the group
`partage.scheduler` or `partage.node`; the host makes the instance.
"""

from partage_plugins.hooks.markers import NODE_GROUP, PROJECT, SCHEDULER_GROUP, hookimpl, hookspec

__all__ = ["NODE_GROUP", "PROJECT", "SCHEDULER_GROUP", "hookimpl", "hookspec"]
