"""The agent behind `partage-oci`: places containers of Docker and Podman on this machine's cards.

`words` parses a container's request, `placement` decides, `holds` tracks allocated cards, and `rewrite` applies the
node plugins' answer to the container's configuration. `agent` runs these steps in order, `server` answers
`partage-oci`.
"""
