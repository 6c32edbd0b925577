"""Shares of cards for containers of other engines: what their CDI files hold, and which engines take such files."""
