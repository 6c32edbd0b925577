"""The life of a process that stays: what every daemon of partage does the same way.

Read in this order: ``settings`` (what a daemon declares), ``cli`` (the command made from it), ``life`` (start, run,
stop). ``resolution`` and ``sources`` find the value of each setting; ``logs``, ``metrics`` (``exposition`` is their
text) and ``health`` are how a daemon speaks, and ``web`` is the port where it is asked; ``lock`` keeps a second daemon
of a kind away, ``plugins`` loads those that a daemon must have, ``signals`` end it, and ``errors`` is what is expected
to go wrong.
"""
