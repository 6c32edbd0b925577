"""Stands for `partage-oci` in tests of the agent: asks it as the contract says, then becomes the runtime that is named.

Copied to a machine with the runtime's path in its place.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

RUNTIME = "@runtime@"
ROOT = "/run/runc"
AGENT, BROKER = "/run/partage/oci.sock", "/run/partage/broker.sock"
VERBS = ("create", "delete", "hook", "kill", "start", "state", "exec", "features", "events", "ps", "pause", "resume")
OURS = ("PARTAGE_", "DOCKER_RESOURCE_PARTAGE-")


def value(words: list[str], flag: str, default: str) -> str:
    return words[words.index(flag) + 1] if flag in words else default


def connected(path: str, tries: int) -> socket.socket:
    """Also to one that is just starting."""
    for left in reversed(range(tries)):
        peer = socket.socket(socket.AF_UNIX)
        try:
            peer.connect(path)
        except OSError:
            peer.close()
            if not left:
                raise
            time.sleep(0.05)
        else:
            return peer
    raise AssertionError


def tell(path: str, question: dict[str, Any], *, tries: int = 1) -> bytes:
    peer = connected(path, tries)
    peer.sendall(json.dumps(question).encode() + b"\n")
    answer = b"" if question["ask"] == "delete" else peer.makefile("rb").readline()
    peer.close()
    return answer


def refuse(words: list[str], why: str) -> NoReturn:
    if "--log" in words:
        with Path(value(words, "--log", "")).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"level": "error", "msg": f"partage: {why}"}) + "\n")
    sys.exit(f"partage: {why}")


def create(words: list[str]) -> str:
    """The runtime to become."""
    bundle = value(words, "--bundle", str(Path.cwd()))
    config = json.loads(Path(bundle, "config.json").read_bytes())
    asks = any(each.startswith(OURS) for each in config["process"]["env"])
    if not (asks or any(key.startswith("partage.dev/") for key in config.get("annotations", {}))):
        return RUNTIME
    root = value(words, "--root", ROOT)
    question = {"ask": "create", "id": words[-1], "bundle": bundle, "root": root, "runtime": RUNTIME}
    answer = json.loads(tell(AGENT, question, tries=200))
    if answer["answer"] == "no":
        refuse(words, answer["why"])
    return answer["runtime"] or RUNTIME


def hook(key: str) -> NoReturn:
    state = json.load(sys.stdin)
    answer = json.loads(tell(BROKER, {"ask": "enter", "key": key, "container": state["id"], "pid": state["pid"]}))
    sys.exit(None if answer["answer"] == "entered" else f"partage: {answer['why']}")


def main(words: list[str]) -> NoReturn:
    verb = next((word for word in words if word in VERBS), "")
    runtime = RUNTIME
    if verb == "hook":
        hook(words[1])
    if verb == "create":
        runtime = create(words)
    if verb == "delete":
        with contextlib.suppress(OSError):
            tell(AGENT, {"ask": "delete", "id": words[-1]})
    os.execv(runtime, [runtime, *words])  # noqa: S606  as the real one does


if __name__ == "__main__":
    main(sys.argv[1:])
