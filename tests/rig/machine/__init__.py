"""Everything that changes the host: run folders, addresses, processes, networks, cgroups; and its cleanup."""
