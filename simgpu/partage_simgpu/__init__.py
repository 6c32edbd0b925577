"""Python interface to the simulated GPU: builds it, describes nodes, runs and controls them.

    profiles ─► description ─► driver_root ─► node (starts simgpud) ─► control
    build ────────────────────────┘

`native/README.md` explains how the simulation works, `docs/simgpu.md` how to use it.
"""
