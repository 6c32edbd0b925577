"""``partage versions``: which versions of partage's daemons run where.

`command` gathers the facts, `running` interprets them and is pure.
"""
