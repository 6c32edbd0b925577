"""The audit: compares the ledger with NVML and the kernel, reports violations, and provides the broker's metrics."""
