"""Will hold the broker (memory ledger, compute leases) and the node plugin that attaches the preload library."""
