"""Will hold the scheduler: queue, cluster state, predicates, binding, extender and the SharePod controller."""
