"""What others of the node ask the broker on its control socket: questions, answers, and a client that blocks.

The node plugin prepares containers here, `partage limits` lowers a limit, `partage top` and `partage doctor` read how
things are. `questions` has the types, `codec` their lines, `client` asks. A container's own processes never come here:
they speak another protocol on a socket of their own.
"""
