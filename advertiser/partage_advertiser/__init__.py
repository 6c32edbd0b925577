"""The advertiser: what a node has, as file and node annotation, written only when something changed.

`service` is the daemon, `assembling` puts it together, `looking` asks plugins and `kubelet` what there is, `readiness`
which daemons are in force, `noticing` whether a look is due before its time. What was seen goes one way, through
`outlets`: `inventory_file`, then `publishing` and `heartbeat` to the API server, then what `telling` finds worth saying
as `events`. `pausing` lets go of the driver for an upgrade, `once` is everything that the command does without living
as a daemon.
"""
