"""The plugin host: runs node plugins in a child process.

If a plugin crashes, leaks memory or hangs, the containers that need it are affected, never the proxy.

`messages` is the protocol, `child` runs in the child process, `confinement` limits it, `blackbox` tells the parent
which plugin was running when the child died; `process` starts and ends the child, `channel` carries frames, `host` is
the interface for crishim. The parent imports no plugin.
"""

from partage_plugins.host.host import HostSettings, PluginHost

__all__ = ["HostSettings", "PluginHost"]
