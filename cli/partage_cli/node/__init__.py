"""``partage node``: commands for the node they run on.

`rest` checks whether the advertiser has released the driver, and `holders` which other processes hold it; the files
that request a pause are in `partage_cli.pauses`.
"""
