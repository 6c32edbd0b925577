"""What crishim decides about a container, in pure functions: no socket, file or clock.

In the order in which a granted container meets them: `allocation` (what the pod's allocation says of it; is it ours,
for this pod and node, not older than what was seen), `holdings` (are its cards here, and is there room beside who holds
what: the runtime's list and reservations; what is to be cleaned up), `confinement` (can limits hold in it), `placement`
(paths that may not meet, sources that must be what they say), `conversion` (the plugins' answer as changes of the
request). `claimed` is for containers with a claim of the DRA driver, `natives` for cards that kubelet gave away itself.
A container without a grant meets `guard` alone. `errors` has every refusal.
"""
