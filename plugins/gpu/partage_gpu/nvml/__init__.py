"""NVML behind a child process: only the child loads the driver's library; the parent queries it and may kill it.

In the parent: `driver` sends queries, `process` is one child, `conversation` tracks open queries, `backoff` times
restarts. In the child: `parent` is its main loop and link to the parent, `session` serves queries; `snapshot`, `signs`
and `events` use `calls`, the interface to NVML. Both exchange `facts` in the protocol of `wire`. `libraries` opens the
driver, `pause` reports whether an operator wants it left alone. The audit's child in isolation has the same lifecycle
and a protocol of its own.
"""
