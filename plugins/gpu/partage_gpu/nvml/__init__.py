"""NVML behind a child process: the child alone loads the driver's library, the parent asks it and may end it.

In the parent: `driver` asks, `process` is one child, `conversation` what is open with it, `backoff` says when it is
started again. In the child: `parent` is its life and its bond, `session` serves it; `look`, `signs` and `events` ask
`calls`, the border to NVML. Both speak `wire` about `facts`. `libraries` opens the driver, `pause` tells whether an
operator wants it left alone. The audit's child of isolation is another of the same life, with words of its own.
"""
