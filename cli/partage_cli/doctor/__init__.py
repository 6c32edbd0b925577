"""``partage doctor``: checks what partage needs of a node, and advises on each fault.

`driver`, `kubelet`, `daemons`, `inventory`, `containerd`, `system` and `cluster` are the checks: each gathers facts and
judges them with pure functions in the same module. For `kubelet`, `units` and `variables` parse what systemd starts,
and `endpoint` decides which setting is in force. `local_node` reads files that may be closed or not regular, `checks`
gives every check a thread and a deadline, `findings` defines the results and `output` prints them.
"""
