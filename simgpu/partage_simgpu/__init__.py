"""The simulated GPU from Python: builds it, describes nodes, runs them, speaks to them.

    profiles ─► description ─► driver_root ─► node (starts simgpud) ─► control
    build ────────────────────────┘

`native/README.md` says how the simulation works; `docs/simgpu.md` what users do with it.
"""
