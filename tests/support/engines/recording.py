"""An OCI runtime that records an engine's calls, and execs runc.

runtime = recording_runtime(tmp_path, programs["runc"])
docker.run("--runtime", NAME, ...)
runtime.calls(of=container)
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

NAME: Final = "recording"
_REFUSED: Final = "(refused)"
_TOLD: Final = frozenset(("create", "start", "exec", "kill", "delete", "--force", _REFUSED))
_PROGRAM: Final = f"""\
#!/bin/sh
folder=${{0%/*}} before= bundle= log= creates=
for word in "$@"; do
    case $before in --bundle) bundle=$word ;; --log) log=$word ;; esac
    [ "$word" = create ] && creates=yes
    before=$word
done
if [ "$creates" ]; then
    cp "$bundle/config.json" "$folder/bundles/$word.json"
    if [ -e "$folder/refusal" ]; then
        echo "$* {_REFUSED}" >>"$folder/calls"
        [ -z "$log" ] || printf '{{"level":"error","msg":"%s"}}\\n' "$(cat "$folder/refusal")" >>"$log"
        cat "$folder/refusal" >&2
        exit 1
    fi
fi
echo "$*" >>"$folder/calls"
exec "$folder/runc" "$@"
"""


@dataclass(frozen=True)
class RecordingRuntime:
    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / NAME

    def calls(self, of: str) -> list[list[str]]:
        """Arguments of each call for this container."""
        lines = [line.split() for line in (self.folder / "calls").read_text().splitlines()]
        return [words for words in lines if of in words]

    def verbs(self, of: str) -> list[str]:
        """Verbs of its calls, such as `create`, `create (refused)` or `delete --force`."""
        return [" ".join(word for word in words if word in _TOLD) for words in self.calls(of)]

    def bundle(self, of: str) -> dict[str, Any]:
        """The configuration that the engine wrote, at the last create."""
        found: dict[str, Any] = json.loads((self.folder / f"bundles/{of}.json").read_bytes())
        return found

    @contextmanager
    def refusing(self, why: str) -> Generator[None]:
        """Reject every create, as partage-oci does."""
        refusal = self.folder / "refusal"
        refusal.write_text(why + "\n")
        try:
            yield
        finally:
            refusal.unlink()


def recording_runtime(folder: Path, runc: Path) -> RecordingRuntime:
    runtime = RecordingRuntime(folder)
    (folder / "bundles").mkdir()
    (folder / "calls").touch()
    (folder / "runc").symlink_to(runc)
    runtime.program.write_text(_PROGRAM)
    runtime.program.chmod(0o755)
    return runtime
