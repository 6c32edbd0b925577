"""The CRI proxy between kubelet and the container runtime.

It rewrites CreateContainer for pods with an allocation and passes every other byte untouched. It runs node plugins in
the child process of `partage_plugins.host` and imports none of them.
"""
