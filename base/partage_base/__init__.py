"""Code that partage's daemons share and plugin authors don't need.

`daemon` is the life cycle of a process (settings, logs, metrics, readiness, signals), `keyring` stores keys; `cri` is
the client of a container runtime, `kube` of the API server, `http2` is the codec of the former. `files` writes whole
files, `listener` and `acceptor` open sockets; `condition` and `findings` are files that one daemon writes and another
reads.
"""
