"""Upgrades a node to another version of partage, and rolls back to the one before if that fails.

`contracts` decides which versions may follow one another (pure), `trial` prepares and removes the rollback, `daemons`
checks whether ours work, and `upgrade` is the journal's step with what comes before and after it.
"""
