"""What touches the host: run folders, addresses, processes, networks, cgroups; and what takes all of it back."""
