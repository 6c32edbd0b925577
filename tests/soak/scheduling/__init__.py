"""The parts of `soak scheduler`.

`users` have pods that come and go, `fleet` has nodes that change, `replicas` are killed by `fighting`, and `history`
judges all of it.
"""
