"""`partage-manager`: the daemon that places pods on this machine's cards, starts them, and starts them again."""
