"""Admission rules for containers, as pure functions: no sockets, files or clocks.

In the order in which they apply to a granted container: `allocation` (what the pod's allocation gives it; whether it is
authentic, for this pod and node, and not older than one seen before), `holdings` (whether its cards are here and have
room beside the holders in the runtime's list and the reservations; which containers to clean up), `confinement`
(whether limits can hold in it), `placement` (mount paths that must not overlap, sources that must be what they claim),
`conversion` (the plugins' answer as changes of the request). `claimed` covers containers with a claim of the DRA
driver, `device_plugin` cards that kubelet allocated itself. A container without a grant is subject to `guard` alone.
`errors` defines all refusals.
"""
