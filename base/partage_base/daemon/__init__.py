"""What every daemon of partage shares: settings, command line, life cycle, logs, metrics and health.

Read in this order: ``settings`` (what a daemon declares), ``cli`` (the command made from it), ``life`` (start, run,
stop). ``resolution`` and ``sources`` find the value of each setting. ``logs``, ``metrics`` (``exposition`` is their
text format) and ``health`` report, and ``web`` serves them over HTTP. ``lock`` allows one daemon of a kind per node,
``plugins`` loads required plugins, ``signals`` handles SIGTERM, SIGINT and SIGHUP, and ``errors`` has the expected
errors.
"""
