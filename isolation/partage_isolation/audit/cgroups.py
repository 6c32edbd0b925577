"""Where a container's control group is, in the hierarchy that all controllers share. Pure.

On a node of the older kind containers are in hierarchies of single controllers, and in the shared one they may all be
in one group with others. So a group counts only if its own name has the container's id.
"""

from __future__ import annotations

from typing import Final

from partage_isolation.audit.proofs import container_of

_SHARED: Final = "0::"


def shared_hierarchy(mountinfo: str) -> str | None:
    """Where it is mounted from its root on."""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        match fields.split(" "):
            case [_, _, _, "/", point, *_] if rest.startswith("cgroup2 "):
                return point
            case _:
                pass
    return None


def group_of(cgroup: str, container_id: str) -> str | None:
    """A container's group below the root of the shared hierarchy, by the file of any process in it."""
    for line in cgroup.splitlines():
        if line.startswith(_SHARED):
            parts = line.removeprefix(_SHARED).strip("/").split("/")
            for number, part in enumerate(parts, 1):
                if container_of(f"{_SHARED}/{part}", {container_id}) is not None:
                    return "/".join(parts[:number])
    return None
