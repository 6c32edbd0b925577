"""What partage's daemons share and no plugin author needs.

`daemon` is the life of a process (settings, logs, metrics, readiness, signals), `keyring` where keys are kept; `cri`
speaks to a container runtime, `kube` to the API server, `http2` is the codec of the former. `files` writes whole files,
`listener` and `acceptor` open sockets; `condition` and `findings` are files that one daemon writes and another reads.
"""
