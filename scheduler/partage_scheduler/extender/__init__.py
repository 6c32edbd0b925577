"""Extender mode: the same core behind a kube-scheduler, which asks it about pods that want devices.

`wire` reads HTTP and `messages` what it carries; `choosing` answers filter and prioritize, `yielding` preempt, and all
of these are pure and change nothing. `placing` does what bind asks for: only there a node's devices are given, signed
and written. `desk` knows which question is whose, `serving` has the sockets, `trusting` the certificates, and
`endpoint` says where the one that leads is asked.
"""
