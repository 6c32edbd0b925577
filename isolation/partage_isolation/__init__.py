"""Enforces containers' limits of a card: broker, node plugin and preload library."""
