"""What the node's cards are and how they fare, from what NVML and kubelet show.

`discovery` looks and keeps; pure modules judge what it saw: `known` cards, their `health` by `xids` and `causes`,
the `pool` they are of by `names` and what `native` says of device plugins. `parts` writes it down, `gauges` measures.
"""
