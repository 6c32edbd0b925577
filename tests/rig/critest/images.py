"""The images that critest 1.36 pulls, under its hard-coded names.

All are the static busybox with the files that a spec needs. Names that must refer to one image have the same value
here; names that must be different images differ by a label, and so by id: critest counts the names of an id.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from rig.images import File, Image, busybox, compiled, pause
from rig.images.image import ARCHITECTURE

_HERE: Final = Path(__file__).parent
_E2E: Final = "registry.k8s.io/e2e-test-images/"
_STAGING: Final = "gcr.io/k8s-staging-cri-tools/"
_PAGE: Final = b"<!doctype html><title>It serves</title>\n"

# Debian's static busybox lacks these applets. critest only greps their output.
_MISSING_APPLETS: Final = {
    "/bin/ipcs": b"#!/bin/sh\ncat /proc/sysvipc/shm\n",
    "/bin/pgrep": b'#!/bin/sh\npidof "$1"\n',
}

_GROUP_OF_THE_IMAGE: Final = {
    "/etc/passwd": b"root:x:0:0:root:/root:/bin/sh\ndefault-user:x:1000:1000::/home:/bin/sh\n",
    "/etc/group": b"root:x:0:\ndefault-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\n",
}


@cache
def images() -> dict[str, Image]:
    """All names that critest's specs pull, with their images. One spec pulls by a digest, which can't be reproduced."""
    base = _busybox()
    return {
        f"{_E2E}busybox:1.29-2": base,
        f"{_E2E}nginx:1.14-2": _web_server(base, "nginx", "80", "master process"),
        f"{_E2E}httpd:2.4.39-4": _web_server(base, "httpd", "80"),
        f"{_E2E}nonewprivs:1.3": _set_user_id(base),
        f"{_STAGING}hostnet-nginx-{ARCHITECTURE}:latest": _web_server(base, "nginx", "12003", "master process"),
        f"{_STAGING}test-image-predefined-group:latest": base.with_files(_GROUP_OF_THE_IMAGE, mode=0o644).as_user(
            "1000"
        ),
        **_users(base),
        **_names(base),
        "registry.k8s.io/pause:3.9": pause().labelled(name="pause:3.9"),
        "k8s.gcr.io/pause:3.9": pause().labelled(name="pause:3.9"),
    }


def _busybox() -> Image:
    shell = compiled(_HERE / "c/sh.c", compiler="musl-gcc", flags=("-static",))
    return busybox().with_files({"/bin/sh": shell, **_MISSING_APPLETS})


def _web_server(base: Image, name: str, *arguments: str) -> Image:
    script = (_HERE / "scripts/serve").read_bytes()
    return base.with_files({"/srv/index.html": _PAGE, f"/usr/sbin/{name}": script}).starting(
        f"/usr/sbin/{name}", *arguments
    )


def _set_user_id(base: Image) -> Image:
    program = compiled(_HERE / "c/nonewprivs.c", compiler="musl-gcc", flags=("-static",))
    return base.with_entries(File("/bin/nonewprivs", program, 0o4755)).starting("/bin/nonewprivs")


def _users(base: Image) -> dict[str, Image]:
    users = {"uid": "1002", "username": "www-data", "uid-group": "1003:1004", "username-group": "www-data:1004"}
    return {f"{_STAGING}test-image-user-{what}:latest": base.as_user(user) for what, user in users.items()}


def _names(base: Image) -> dict[str, Image]:
    """Images that are pulled, counted and removed, by their names."""
    # One spec starts this image as it is and removes the container while it runs. If the program ends just then, a race
    # in containerd rejects the removal with "container is still running, to stop first".
    stays = {f"{_STAGING}test-image-tag:test": base.labelled(name="test-image-tag:test").starting("/bin/sleep", "600")}
    alone = ("test-image-latest:latest", "test-image-tag:all")
    different = tuple(f"test-image-{number}:latest" for number in (1, 2, 3))
    same = {f"{_STAGING}test-image-tags:{tag}": base.labelled(name="test-image-tags") for tag in (1, 2, 3)}
    return {**{f"{_STAGING}{name}": base.labelled(name=name) for name in (*alone, *different)}, **same, **stays}
