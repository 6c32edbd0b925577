"""Nodes: machines made of namespaces, each with its own containerd, kubelet and daemons."""
