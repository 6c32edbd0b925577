"""Runs ``partage node``, and kills it right after one action: ``python mortal.py POINT WORDS…``.

A point is a function; one of the journal may also name the step that is its argument: ``journal.forget units``.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from partage_cli.installation import turn, uninstall
from partage_cli.installation.journal import Journal
from partage_cli.main import main

OWNERS = {"journal": Journal, "turn": turn, "uninstall": uninstall}


def let_die(point: str) -> None:
    function, _, step = point.partition(" ")
    owner, _, name = function.partition(".")
    real = getattr(OWNERS[owner], name)

    def deadly(*arguments: Any, **named: Any) -> Any:
        result = real(*arguments, **named)
        if not step or step in arguments:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(OWNERS[owner], name, deadly)


let_die(sys.argv.pop(1))
sys.argv.insert(1, "node")
main()
