"""The parts of `soak machine`.

`starters` all want a part of a card at once, `deaths` kill services meanwhile, `sampler` looks what is given by the
runtime's own list, `books` compares what all say in the end, and `rounds` is one such round with its seed.
"""
