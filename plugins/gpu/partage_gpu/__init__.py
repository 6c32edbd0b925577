"""Our plugins for the kind `gpu`: loaded by entry points, like anybody's. The core imports nothing of them.

`allocator` is the scheduler's side. `node` is crishim's and the advertiser's, which finds cards by `discovery`, which
asks the driver by `nvml`. `driver_root` is where all of them find it.
"""
