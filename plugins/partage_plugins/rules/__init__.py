"""Pure decisions about plugins' answers: how adjustments are merged, and which promises no plugin enforces."""
