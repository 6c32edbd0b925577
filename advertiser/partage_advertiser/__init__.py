"""The advertiser: what a node has, as file and node annotation, written only when something changed.

`service` is the daemon; `inspection` asks plugins and `kubelet` what there is, `signs` says which daemons are in force
and pauses for a driver upgrade. What was seen goes one way, through `inventory`: the file, then `publisher` and
`heartbeat` to the API server, then what `happenings` finds worth saying as `events`. `cli` has what the command does
without living as a daemon.
"""
