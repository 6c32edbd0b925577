"""Containers with limited card memory, by real kubelet and containerd, on simulated cards."""
