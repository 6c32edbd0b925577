"""``partage node``: what people do to the node they are on.

`waiting` looks whether the advertiser has let go of the driver, and `holders` who else holds it; the files by which it
is asked to are `partage_cli.node.pause`.
"""
