"""The advertiser: publishes a node's devices as a file and a node annotation, written only on change.

`service` is the daemon; `inspection` collects the devices from plugins and `kubelet`; `liveness_files` checks which
daemons are in force, and pauses for a driver upgrade. Data flows one way, through `inventory`: to the file, then by
`publisher` and `heartbeat` to the API server, then as `events` for the changes that `condition_changes` reports. `cli`
has the one-shot modes of the command.
"""
