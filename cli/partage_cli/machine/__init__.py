"""One machine without Kubernetes: containers of Docker and Podman share its cards.

`setup` starts and removes the daemons that this needs; `commands` is the command line. The agent (`partage_oci`)
decides about allocations, and the engines own the containers.
"""
