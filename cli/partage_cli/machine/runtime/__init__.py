"""The container runtime of one machine, spoken to by CRI as kubelet does."""
