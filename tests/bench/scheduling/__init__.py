"""A large made-up cluster, a backlog of pods, and their schedulers."""
