"""The commands of a documentation page, and a reader who types them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.patience import patience_s
from rig.rig import CHECKOUT
from support.fences import lines

INSTALL: Final = CHECKOUT / "docs/install.md"
_PART: Final = re.compile(r"^## (?P<heading>.+?)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(r"^```(?P<kind>\w*)\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE: Final = "console"
_TYPED_WITHIN_S: Final = 900.0
"""A command waits for all nodes, one after the other; other tests judge the duration."""


def commands(page: Path = INSTALL) -> dict[str, list[str]]:
    """Commands by heading, each with its continuation lines and without output; headings without commands are left out.

    Commands before the first heading are under the page's name.
    """
    text = f"## {page.name}\n{page.read_text(encoding='utf-8')}"
    found = {
        part["heading"]: [each for block in _BLOCK.finditer(part["text"]) for each in lines(block["lines"])]
        for part in _PART.finditer(text)
    }
    others = {block["kind"] for block in _BLOCK.finditer(text)} - {_CONSOLE}
    assert not others, f"{page.name} has blocks that are not ```{_CONSOLE}, but {others}: nobody would type them here"
    return {heading: typed for heading, typed in found.items() if typed}


@dataclass
class Reader:
    """A shell user: each command sees what the ones before it exported."""

    folder: Path
    environment: dict[str, str]

    def types(self, command: str) -> str:
        """The command's output; raises if it fails."""
        with tempfile.NamedTemporaryFile() as exported:
            done = subprocess.run(
                ("bash", "-c", f'{command}\nstatus=$?; env -0 >"$0"; exit $status', exported.name),
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=patience_s(_TYPED_WITHIN_S),
            )
            assert done.returncode == 0, f"{command}: {done.stdout}"
            pairs = Path(exported.name).read_text().rstrip("\0").split("\0")
        self.environment = dict(pair.split("=", 1) for pair in pairs)
        return done.stdout
