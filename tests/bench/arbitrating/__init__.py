"""What `bench-arbiter` measures: what happened on simulated nodes, told to an arbiter once more."""
