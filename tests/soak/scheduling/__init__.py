"""The parts of `soak scheduler`.

`users` creates and deletes pods, `fleet` changes nodes, `fighting` kills the `replicas`, and `history` judges all of
it.
"""
