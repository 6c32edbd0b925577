"""Whether limits hold: what NVML and the kernel show of processes, what is wrong about it, and the broker's figures."""
