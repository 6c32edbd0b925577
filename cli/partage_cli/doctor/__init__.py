"""``partage doctor``: what of a node is not as partage needs it, and what to do about it.

`driver`, `kubelet`, `daemons`, `inventory`, `containerd`, `keys`, `system` and `cluster` are the checks: each looks,
and judges what it saw by functions beside it that are pure. Of `kubelet`, `units`, `variables` and `flags` read what
systemd starts, and `endpoint` decides which of all that holds. `looking` reads files that may be closed or no files at
all, `running` gives every check a thread and a deadline, `findings` is what comes out and `shown` what is printed.
"""
