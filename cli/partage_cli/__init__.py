"""What people type: `partage …` and `kubectl partage …`.

Every subcommand lives in a module of its own and is imported only when it is called.
"""
