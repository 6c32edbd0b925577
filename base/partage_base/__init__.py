"""What partage's daemons share and no plugin author needs.

`daemon` is the life of a process (settings, logs, metrics, readiness, signals), `keyring` where keys are kept; `cri`
will speak to a container runtime, `kube` to the API server. Imports `partage_plugins` and nothing else of ours.
"""
