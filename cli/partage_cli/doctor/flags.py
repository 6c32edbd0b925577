"""What a command line of kubelet says about one flag. Pure.

Its rules: ``--flag=value`` or ``--flag value``, ``_`` for ``-``, the last one wins, nothing after ``--``.
"""

from __future__ import annotations

from collections.abc import Sequence

from partage_cli.doctor.units import Word


def last_use(argv: Sequence[Word], flag: str) -> Word | None:
    """The value that holds, and where it is written; None where the flag is not given."""
    found: Word | None = None
    rest = iter(argv)
    for word in rest:
        if word.text == "--":
            break
        name, equals, value = word.text.partition("=")
        if name.replace("_", "-") != f"--{flag}":
            continue
        if equals:
            found = Word(value, word.where)
        elif (following := next(rest, None)) is not None:
            found = following
    return found
