"""Pure decisions about plugins' results: how adjustments are merged, and which promises no plugin enforces."""
