"""The CRI proxy between kubelet and the container runtime.

It rewrites CreateContainer for pods with an allocation and passes all other bytes through unchanged. Node plugins run
in the child process of `partage_plugins.host`; crishim imports none of them.
"""
