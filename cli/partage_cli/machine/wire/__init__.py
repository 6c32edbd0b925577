"""How the manager is spoken to: messages, lines, and a client."""
