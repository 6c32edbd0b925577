"""Extender mode: the same core behind a kube-scheduler, which asks it about pods that want devices.

`wire` reads HTTP and `messages` what it carries; `filter` answers filter and prioritize, `preempt` preempt: they are
pure and change nothing. `bind` alone gives devices. `verbs` knows which question is whose, `server` has the sockets,
`callers` the certificates, and `reminders` tells kube-scheduler of pods that fit now.
"""
