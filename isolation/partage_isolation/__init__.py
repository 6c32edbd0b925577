"""Keeps containers within what they were given of a card: broker, node plugin, preload library; and simulated cards."""
