"""The typed façades through which hosts call plugins: `scheduler` (imports numpy) and `node` (never does)."""
