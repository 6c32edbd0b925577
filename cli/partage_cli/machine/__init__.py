"""One machine without Kubernetes: containers of Docker and Podman share its cards.

`setup` starts the daemons that this needs and takes that back; `commands` is what people type. Who holds what is the
agent's to say (`partage_oci`), and containers are their engine's.
"""
