"""Docker and Podman on machines of the rig: Debian's own programs from the cache, none of them installed."""
