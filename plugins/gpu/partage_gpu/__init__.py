"""Our plugins for the kind `gpu`, loaded by entry points like third-party ones. The core imports nothing of them.

`allocator` is the scheduler side. `node` is the node side in crishim and the advertiser; it finds cards by `discovery`,
which queries the driver by `nvml`. `driver_root` locates the driver for all of them.
"""
