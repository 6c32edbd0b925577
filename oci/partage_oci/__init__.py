"""The agent behind `partage-oci`: places containers of Docker and Podman on this machine's cards.

`words` reads what a container asks for, `placement` decides, `holds` keeps the room, `rewrite` applies what node
plugins answer to the container's configuration. `agent` puts these in order, `server` answers `partage-oci`.
"""
