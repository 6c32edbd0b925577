"""The audit: compares the ledger with NVML and the kernel and reports violations."""
