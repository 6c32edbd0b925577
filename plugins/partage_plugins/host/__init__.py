"""The plugin host: node plugins in a child process.

One that crashes, leaks or hangs costs its containers and never the proxy.
`messages` is the protocol, `child` what runs in the child, `confinement` bounds what it can do, `blackbox` tells the
parent which plugin was running when the child died; `process` starts and ends the child, `channel` carries frames,
`host` is what crishim holds. The parent imports no plugin.
"""

from partage_plugins.host.host import HostSettings, PluginHost

__all__ = ["HostSettings", "PluginHost"]
