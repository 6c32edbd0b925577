"""Discovers the node's cards and their health, from NVML and kubelet.

`discovery` collects and keeps the data; pure modules evaluate it: `known` cards, their `health` by `causes`, the `pool`
of each by what `device_plugin` finds of device plugins. `parts` formats the inventory's part and the gauges.
"""
