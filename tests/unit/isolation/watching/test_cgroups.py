"""A container's control group is found by its id, and no group is taken for it that others may be in."""

from __future__ import annotations

import pytest

from partage_isolation.audit.proofs import group_of, shared_hierarchy

ID = "ab" * 32
UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
OLDER = "31 23 0:27 / /sys/fs/cgroup/memory rw shared:5 - cgroup cgroup rw,memory\n"
PART = "32 23 0:26 /kubepods /mnt/part rw - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (f"/pods.slice/pod1.slice/cri-containerd-{ID}.scope", f"pods.slice/pod1.slice/cri-containerd-{ID}.scope"),
        (f"/kubepods/pod1/{ID}", f"kubepods/pod1/{ID}"),
        (f"/kubepods/pod1/{ID}/init.scope", f"kubepods/pod1/{ID}"),
        (f"/pod1/{ID}/nested/{ID}", f"pod1/{ID}"),
    ],
)
def test_the_outermost_group_that_has_the_containers_id_is_its_own(path: str, found: str) -> None:
    assert group_of(f"0::{path}\n", ID) == found


@pytest.mark.parametrize("cgroup", ["", "0::/\n", f"4:memory:/pod1/{ID}\n0::/\n", "0::/kubepods/pod1\n", "nonsense"])
def test_a_group_without_the_id_is_nobodys(cgroup: str) -> None:
    assert group_of(cgroup, ID) is None


def test_the_shared_hierarchy_is_found_where_it_is_mounted_whole() -> None:
    assert shared_hierarchy(OLDER + UNIFIED) == "/sys/fs/cgroup"
    assert shared_hierarchy(PART + UNIFIED) == "/sys/fs/cgroup"
    assert shared_hierarchy(OLDER + PART) is None
