"""`partage up` and `partage down`: the programs, files and services that a machine needs, and their end."""
