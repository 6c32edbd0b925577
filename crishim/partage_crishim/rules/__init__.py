"""What crishim decides about a container, in pure functions: no socket, file or clock.

In the order in which a granted container meets them: `claims` (what the pod's allocation says of it), `trust` (is it
ours, for this pod and node, not older than what was seen), `capacity` (are its cards here, and is there room), `books`
(who holds what: the runtime's list and reservations), `confining` (can limits hold in it), `placing` (paths that may
not meet, sources that must be what they say), `applying` (the plugins' answer as changes of the request). A container
without a grant meets `guarding` alone. `gone` says what is to be cleaned up. `errors` has every refusal.
"""
