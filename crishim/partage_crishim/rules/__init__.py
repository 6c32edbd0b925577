"""What crishim decides about a container, in pure functions: no socket, file or clock.

In the order in which a granted container meets them: `allocation` (what the pod's allocation says of it), `trust` (is
it ours, for this pod and node, not older than what was seen), `capacity` (are its cards here, and is there room),
`holdings` (who holds what: the runtime's list and reservations; what is to be cleaned up), `confinement` (can limits
hold in it), `placement` (paths that may not meet, sources that must be what they say), `conversion` (the plugins'
answer as changes of the request). A container without a grant meets `guard` alone. `errors` has every refusal.
"""
