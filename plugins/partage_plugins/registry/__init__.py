"""Finds plugins, loads them one by one, and calls them so that every error names its plugin.

`entry_points` finds them, `registry` registers and checks, `calls` binds hooks to plain functions, `watchdog` ends a
process whose plugin hangs. The hosts' typed interfaces on top of it are in `partage_plugins.framework`.
"""
