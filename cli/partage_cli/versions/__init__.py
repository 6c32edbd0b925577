"""``partage versions``: which versions of partage's daemons run where.

`command` gathers, `running` decides what it means and is pure.
"""
