"""The drop-in that registers our runtime with Podman: a file of its own, so that undoing removes it. Pure."""

from __future__ import annotations

import json
from typing import Final

from partage_cli.docker.daemon_json import RUNTIME

_DEFAULT: Final = f"[engine]\nruntime = {json.dumps(RUNTIME)}\n\n"
_HEAD: Final = "# Written by `partage docker install`; `partage docker uninstall` removes it.\n"


def drop_in(program: str, *, is_default: bool) -> bytes:
    """Content of a file in `containers.conf.d`."""
    return f"{_HEAD}{_DEFAULT if is_default else ''}[engine.runtimes]\n{RUNTIME} = [{json.dumps(program)}]\n".encode()


def is_ours(content: bytes) -> bool:
    return content.startswith(_HEAD.encode())


def is_default(content: bytes) -> bool:
    return is_ours(content) and _DEFAULT.encode() in content
