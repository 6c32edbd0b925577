"""The broker's interfaces: packets of containers' processes, and root's requests on the control socket."""
