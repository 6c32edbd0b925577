"""The hosts' typed interfaces to their plugins: `scheduler` (imports numpy) and `node` (never does)."""
