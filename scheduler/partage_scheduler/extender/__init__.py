"""Extender mode: the same core behind a kube-scheduler, which calls it about pods that request devices.

`wire` parses HTTP and `messages` its bodies; `filter` answers filter and prioritize, `preempt` preempt: they are pure
and change nothing. Only `bind` grants devices. `verbs` dispatches calls, `server` has the sockets, `callers` the
certificates, and `reminders` makes kube-scheduler retry pods that fit now.
"""
