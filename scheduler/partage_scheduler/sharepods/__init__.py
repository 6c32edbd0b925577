"""KubeShare's SharePods: a pod of the same name for each, placed by our scheduler; its status is copied back.

A process of its own, `partage-sharepods`: it may create pods, which the process that signs allocations should not.
Pure, from the ground up: `objects` are SharePods and their pods as types; `cards` maps a pair of node and GPUID to a
card; `manifest` builds the pod; `step` decides the next step of one SharePod; `status` computes its status; `state`
holds all known state and the work queue. `controller` carries out one step after the other and sends events, `service`
is the process.

All state is in the API server: each step is derived from it, and can be repeated.
"""
