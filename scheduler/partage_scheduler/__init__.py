"""The scheduler: places pods on nodes and containers on shares of cards. `docs/architecture.md` lists its packages."""
