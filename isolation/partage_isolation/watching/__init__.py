"""Watches that limits hold: what cards say of processes, what the runtime runs, and what is wrong about it.

`use` has the border to the broker's books; `nvml` asks the driver, in a `child` process; `runtime` asks the container
runtime; `engagement` looks at processes, and `proofs`, which is pure, reads what it sees. `auditing`, which is pure,
decides what is wrong, and `auditor` tells and acts.
"""
