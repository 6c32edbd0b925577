"""Time slices: which container may launch work on a card, and for how long. Pure: timed events in, actions out."""
