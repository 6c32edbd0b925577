"""KubeShare's SharePods: for each a pod of the same name, placed by us; its status comes back to the SharePod.

A process of its own, `partage-sharepods`: it may create pods, and who signs allocations should not. Pure, from the
ground up: `objects` are SharePods and their pods as types; `cards` knows which card a pair of node and GPUID is;
`manifest` writes the pod; `step` says what is next for one SharePod; `report` says what its status should be; `scene`
has all that is known, and says whose turn it is. `controller` carries out one step after the other and sends events,
`service` is the process.

All state is in the API server: each step is derived from what stands there, and can be taken twice.
"""
