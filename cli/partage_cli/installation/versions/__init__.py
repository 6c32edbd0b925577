"""Upgrades a node to another version of partage, and rolls back to the one before if that fails.

`contracts` decides which versions may follow one another and `version_back` is the rollback script (both pure),
`daemons` checks whether ours work, and `upgrade` is the journal's step with what comes before and after it.
"""
