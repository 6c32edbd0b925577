"""`partage up` and `partage down`: creates and removes the programs, files and services of a machine."""
