"""The life of a process that stays: what every daemon of partage does the same way.

Read in this order: ``settings`` (what a daemon declares), ``cli`` (the command made from it), ``life`` (load, start,
run, stop). ``fields``, ``values``, ``resolving``, ``printing`` and ``toml`` are the machinery of settings; ``logs``,
``lines``, ``repeats``, ``metrics``, ``health`` and ``systemd`` are how a daemon speaks; ``web`` is the one port where
it is asked; ``plugins`` loads those that a daemon must have; ``signals`` and ``tasks`` end it; ``errors`` is what is
expected to go wrong, ``reports`` tells it.
"""
