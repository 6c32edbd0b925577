"""NVML behind a child process: the child alone loads the driver's library, the parent asks it and may end it.

In the parent: `driver` asks, `process` is one child, `conversation` what is open with it, `patience` when it is started
again. In the child: `child` is its life, `session` serves its parent, `look`, `samples`, `signs` and `events` ask
`calls`, the border to NVML. Both speak `wire` about `facts`. `libraries` finds the driver's files, `pause` whether an
operator wants the driver left alone.
"""
