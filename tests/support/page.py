"""The commands of a page of docs, as its reader types them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from rig.rig import CHECKOUT

INSTALL: Final = CHECKOUT / "docs/install.md"
_PART: Final = re.compile(r"^## (?P<heading>.+?)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(r"^```console\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT: Final = "$ "
_HERE: Final = re.compile(r"<<'(?P<end>\w+)'$")


def commands(heading: str, page: Path = INSTALL) -> list[str]:
    """Of one part, in their order, each with the lines that it goes on with; not what they print."""
    parts = {found["heading"]: found["text"] for found in _PART.finditer(page.read_text(encoding="utf-8"))}
    return [command for block in _BLOCK.finditer(parts[heading]) for command in _commands(block["lines"])]


def _commands(block: str) -> list[str]:
    found: list[str] = []
    end = ""
    goes_on = False
    for line in block.splitlines():
        if goes_on:
            found[-1] += f"\n{line}"
        elif line.startswith(_PROMPT):
            found.append(line.removeprefix(_PROMPT))
            here = _HERE.search(line)
            end = here["end"] if here else ""
        else:
            continue
        goes_on = line.endswith("\\") or end not in ("", line)
    return found
