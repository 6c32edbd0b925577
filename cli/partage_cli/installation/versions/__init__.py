"""Puts another version of partage in force on a node that runs one, and the one before where that does not work.

`contracts` says which versions may follow one another (pure), `trial` is the way back, laid and taken away, `daemons`
asks whether those of ours work, and `upgrade` is the step of the journal with what goes before and after it.
"""
