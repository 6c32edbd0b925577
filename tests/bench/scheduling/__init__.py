"""A large made-up cluster, a backlog of pods, and who places them."""
