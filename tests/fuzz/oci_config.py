"""For any config.json, partage-oci extracts the same values as Python, and asks the agent if Python would.

Input that Python can't read does no harm: the program exits by itself, with the sanitizers watching, and extracts
nothing or refuses. It runs as an engine calls it, with the guard on and an unreachable agent.
"""

from __future__ import annotations

import atexit
import json
import tempfile
from pathlib import Path
from typing import Final

from fuzz.engine.json_mutation import change_json
from support.oci_oracle import MOST_DEPTH, asks, cleaned, depth, parsed
from support.oci_program import Program, sanitized

_NODE: Final = {"path": "/dev/nvidia-uvm", "type": "c", "major": 511, "minor": 0}
_FULL: Final = {
    "ociVersion": "1.0.2",
    "process": {"env": ["PATH=/bin", "PARTAGE_SHARE=300"], "args": ["sh"]},
    "annotations": {"partage.dev/gpu-milli": "300", "a": "é"},
    "mounts": [{"source": "proc"}, {"source": "/dev/nvidia0"}, {"destination": "/var/run/nvidia-container-devices/0"}],
    "hooks": {"prestart": [{"path": "/usr/bin/nvidia-ctk", "args": ["nvidia-ctk", "hook"]}, {"path": "/bin/true"}]},
    "linux": {
        "devices": [_NODE, _NODE | {"path": "/dev/a"}, {"path": "/dev/null", "type": "c", "major": 1, "minor": 3}],
        "resources": {"devices": [{"allow": False}, {"allow": True, "type": "c", "major": 511}]},
    },
}
SEEDS: Final = (
    json.dumps(_FULL).encode(),
    json.dumps(_FULL, indent=1, ensure_ascii=False).encode(),
    b'{"process":{"env":["\\u0050ARTAGE_\\ud83d\\ude00=1"]},"process":{}}',
    b"[" * 64 + b"]" * 64,
    b"-1.5e+3",
    b"",
)
DICTIONARY: Final = (
    b"PARTAGE_A=",
    b"partage.dev/",
    b"/dev/nvidia",
    b"\\u002f",
    b"\\ud800",
    b'"major":195',
    b"195.0",
    b"[[",
)
_UNREAD: Final = b"partage: %b can't be read, to keep cards out: "
_AWAY: Final = b"partage: no agent answers"

change = change_json
_folder: Final = tempfile.TemporaryDirectory()
atexit.register(_folder.cleanup)
_program: Final = Program(Path(_folder.name), sanitized())
_program.configure("guard yes")


def target(data: bytes) -> str:
    done = _program.create(data)
    left = (_program.folder / "bundle/config.json").read_bytes()
    undecodable = done.stderr.startswith(_UNREAD % str(_program.folder / "bundle/config.json").encode())
    asked = done.stderr.startswith(_AWAY)
    if done.returncode != (undecodable or asked) or bool(done.stderr) != (undecodable or asked):
        raise AssertionError(f"it ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    if undecodable and left != data:
        raise AssertionError("what could not be read was changed")
    try:
        config = parsed(data)
        depth_of = depth(config)
    except (ValueError, RecursionError):
        return f"no JSON {undecodable} {asked}"
    if depth_of > MOST_DEPTH or undecodable:
        if undecodable and depth_of > MOST_DEPTH:
            return "deep"
        raise AssertionError("read where it may not be, or not read where it can be")
    if asked != asks(config):
        raise AssertionError(f"it asks: {asked}")
    if json.dumps(parsed(left), sort_keys=True) != json.dumps(cleaned(config), sort_keys=True):
        raise AssertionError(f"left: {left!r}")
    return f"asked {asked}, cards {left != data}"
