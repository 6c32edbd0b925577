"""``partage doctor``: what of a node is not as partage needs it, and what to do about it.

`driver`, `kubelet`, `daemons`, `inventory`, `containerd`, `system` and `cluster` are the checks: each looks, and judges
what it saw by functions beside it that are pure. Of `kubelet`, `units` and `variables` read what systemd starts, and
`endpoint` decides which of all that holds. `local_node` reads files that may be closed or no files at all, `checks`
gives every check a thread and a deadline, `findings` is what comes out and `output` what is printed.
"""
