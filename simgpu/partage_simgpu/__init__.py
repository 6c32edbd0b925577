"""The simulated GPU from Python: builds it, describes nodes, runs them, speaks to them.

    profiles ─► describing ─► driver_root ─► node (starts simgpud) ─► control
    building ───────────────────┘

What the simulation is and how it works stands in `native/README.md`; what users do with it in
`docs/simgpu.md`.
"""
