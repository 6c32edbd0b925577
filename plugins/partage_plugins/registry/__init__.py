"""How plugins are found, loaded one by one, and called with their names on every fault.

`finding` reads entry points, `registry` registers and checks, `calls` binds hooks to plain functions, `watchdog` ends
a process whose plugin hangs. The typed façades over it are in `partage_plugins.sides`.
"""
