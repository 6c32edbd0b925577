"""Puts another version of partage in force on a node that runs one, and the one before where that does not work.

`contracts` says which versions may follow one another (pure), `version_back` is the script that goes back with nothing
of ours (pure), `trial` puts it in place and takes it away, `daemons` asks whether those of ours work, and `upgrade` is
all of it in its order.
"""
