"""The scheduler: `deciding` is its pure core, `plugged` that core over plugins, `simulating` replays workloads on it.

Queue, cluster state, predicates, binding, extender and the SharePod controller will live here.
"""
