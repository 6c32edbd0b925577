"""Pure decisions about plugins' answers: how adjustments are merged, and which promises nobody enforces."""
