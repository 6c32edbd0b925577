"""The command line: `partage …` and `kubectl partage …`.

Every subcommand lives in a module of its own, which is imported only when the subcommand is called.
"""
