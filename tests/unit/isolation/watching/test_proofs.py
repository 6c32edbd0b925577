"""Evidence from the kernel proves what it should, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.audit.proofs import (
    Birth,
    Expected,
    FileId,
    birth,
    container_of,
    executes,
    group_of,
    led_to,
    mapped_as,
    mounted_from,
    mounts,
    shared_hierarchy,
    wrong_places,
)

MAPS = """\
55e0c0a00000-55e0c0a02000 r--p 00000000 08:01 1310 /usr/bin/python3.11
55e0c0a02000-55e0c0a04000 r-xp 00002000 08:01 1310 /usr/bin/python3.11
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f1000000000-7f1000001000 r--p 00000000 fd:00 77 /run/partage/lib/libcuda.so.1
7f1000001000-7f1000002000 r-xp 00001000 fd:00 77 /run/partage/lib/libcuda.so.1
7f2000000000-7f2000001000 r-xp 00000000 08:01 99 /var/a name with spaces (deleted)
7f3000000000-7f3000001000 r--p 00000000 08:01 50 /only/read
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]
7ffc000f0000-7ffc000f2000 r-xp 00000000 00:00 0 [vdso]
"""
KEY = "0123456789abcdef0123456789abcdef"
FOLDER, LIBRARY, PRELOAD = f"/partage/containers/{KEY}", "/usr/local/lib/partage/1.0", "/etc/ld.so.preload"
NEWER = "/etc/ld-nix.so.preload"
PARENTS = frozenset({("8:1", "/usr/local/lib/partage")})
EXPECTED = (
    Expected("/run/partage", frozenset({("0:25", FOLDER)})),
    Expected("/run/partage/lib", frozenset({("8:1", LIBRARY), ("8:1", "/usr/local/lib/partage/0.9")}), PARENTS),
    Expected(PRELOAD, frozenset({("0:25", f"{FOLDER}/preload")})),
    Expected(NEWER, frozenset({("0:25", f"{FOLDER}/preload")}), may_be_absent=True),
)
CONTAINER = (
    "500 400 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/a",
    "501 500 0:62 / /proc rw,nosuid - proc proc rw",
    f"502 500 0:25 {FOLDER} /run/partage ro,nosuid - tmpfs tmpfs rw",
    f"503 502 8:1 {LIBRARY} /run/partage/lib ro,relatime master:1 - ext4 /dev/sda1 rw",
    f"504 500 0:25 {FOLDER}/preload {PRELOAD} ro,nosuid - tmpfs tmpfs rw",
    "505 500 8:1 /var/lib/kubelet/pods/x/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw",
)


def wrong(*lines: str) -> tuple[str, ...] | None:
    return wrong_places(mounts("\n".join(lines)), EXPECTED)


def changed(number: int, old: str, new: str) -> tuple[str, ...]:
    return tuple(line.replace(old, new) if at == number else line for at, line in enumerate(CONTAINER))


def runs(maps: str, files: Iterable[FileId]) -> bool | None:
    return executes(maps, files, path="/run/partage/lib/libcuda.so.1")


LIB, ONLY_READ = FileId("fd:00", 77), FileId("08:01", 50)


def test_only_what_may_be_executed_counts_and_names_do_not() -> None:
    assert runs(MAPS, {LIB})
    assert runs(MAPS, {FileId("08:01", 1310)})
    assert runs(MAPS, {FileId("08:01", 99)})
    assert runs(MAPS, {ONLY_READ}) is False
    assert runs(MAPS, {ONLY_READ, LIB})
    assert runs(MAPS, {FileId("fd:00", 7)}) is False
    assert runs(MAPS, {FileId("08:01", 77)}) is False
    assert runs(MAPS, ()) is False


def test_a_name_that_looks_like_a_files_numbers_is_a_name() -> None:
    disguised = "7f2000000000-7f2000001000 r-xp 00000000 08:01 99 /tmp/ fd:00 77 /run/partage/lib/libcuda.so.1"
    assert runs(disguised, {LIB}) is False
    assert runs(f"{disguised}\n{MAPS}", {LIB})


@pytest.mark.parametrize("text", ["", "\n", "garbage", "a b c"])
def test_a_process_without_memory_says_nothing(text: str) -> None:
    assert runs(text, {LIB}) is None


def test_a_file_of_ours_is_found_by_its_whole_path() -> None:
    assert mapped_as(MAPS, "/run/partage/lib/libcuda.so.1") == FileId("fd:00", 77)
    assert mapped_as(MAPS, "lib/libcuda.so.1") is None
    assert mapped_as(MAPS, "/nowhere") is None


def test_a_container_as_it_was_made_has_no_wrong_place() -> None:
    assert wrong(*CONTAINER) == ()


def test_an_older_library_is_a_right_one() -> None:
    assert wrong(*changed(3, LIBRARY, "/usr/local/lib/partage/0.9")) == ()


def test_a_version_that_was_removed_on_the_node_since_was_a_right_one() -> None:
    assert wrong(*changed(3, LIBRARY, "/usr/local/lib/partage/0.8//deleted")) == ()
    assert wrong(*changed(3, LIBRARY, "/usr/local/lib/partage/0.8")) == ("/run/partage/lib",)
    assert wrong(*changed(3, LIBRARY, "/usr/local/lib/other/0.8//deleted")) == ("/run/partage/lib",)


def test_of_a_library_that_was_replaced_on_the_node_since_nothing_is_said() -> None:
    replaced = MAPS.replace("libcuda.so.1\n", "libcuda.so.1 (deleted)\n")
    assert runs(replaced, {FileId("fd:00", 78)}) is None
    assert runs(replaced, {LIB})
    assert runs(MAPS, {FileId("fd:00", 78)}) is False


def test_a_file_that_was_replaced_on_the_node_since_is_the_one_that_was_mounted() -> None:
    assert wrong(*changed(4, "/preload ", "/preload//deleted ")) == ()


@pytest.mark.parametrize(
    ("lines", "places"),
    [
        (CONTAINER[:2] + CONTAINER[4:], ("/run/partage", "/run/partage/lib")),
        (CONTAINER[:4] + CONTAINER[5:], (PRELOAD,)),
        (changed(2, "ro,", "rw,"), ("/run/partage",)),
        (changed(2, KEY, "f" * 32), ("/run/partage",)),
        (changed(3, "8:1 ", "8:2 "), ("/run/partage/lib",)),
        (changed(3, LIBRARY, "/somewhere/else"), ("/run/partage/lib",)),
        (changed(2, " /run/partage ", " /run2/partage "), ("/run/partage", "/run/partage/lib")),
        ((*CONTAINER, "600 502 0:77 / /run/partage rw - tmpfs x rw"), ("/run/partage", "/run/partage/lib")),
        ((*CONTAINER, f"600 503 8:1 {LIBRARY} /run/partage/lib ro - ext4 x rw"), ("/run/partage/lib",)),
        (
            (*CONTAINER, "600 503 0:77 /x /run/partage/lib/libcuda.so.1 ro - tmpfs x rw"),
            ("/run/partage", "/run/partage/lib"),
        ),
        ((*CONTAINER, "600 502 0:77 /x /run/partage/broker ro - tmpfs x rw"), ("/run/partage",)),
        ((*CONTAINER, "600 504 0:77 /x /etc/ld.so.preload ro - tmpfs x rw"), (PRELOAD,)),
        ((*CONTAINER, "600 500 0:77 / /run rw - tmpfs x rw"), ("/run/partage", "/run/partage/lib")),
        ((*CONTAINER, "600 500 0:77 / /etc rw - tmpfs x rw"), (PRELOAD,)),
        ((*CONTAINER, "600 500 0:77 / / rw - tmpfs x rw"), ("/run/partage", "/run/partage/lib", PRELOAD)),
    ],
)
def test_what_is_missing_covered_moved_or_writable_is_a_wrong_place(
    lines: Sequence[str], places: tuple[str, ...]
) -> None:
    assert wrong(*lines) == places


def test_what_an_earlier_version_did_not_mount_may_be_absent_and_nothing_else() -> None:
    ours = f"505 500 0:25 {FOLDER}/preload {NEWER} ro,nosuid - tmpfs tmpfs rw"
    assert wrong(*CONTAINER) == ()
    assert wrong(*CONTAINER, ours) == ()
    assert wrong(*CONTAINER, ours.replace("ro,", "rw,")) == (NEWER,)
    assert wrong(*CONTAINER, ours.replace("/preload ", "/other ")) == (NEWER,)


def test_mounts_beside_ours_are_nobodys_business() -> None:
    assert wrong(*CONTAINER, "600 500 0:77 / /run/partage-of-mine rw - tmpfs x rw") == ()
    assert wrong(*CONTAINER, "600 500 0:77 / /etc/ld.so.preload.d rw - tmpfs x rw") == ()


@pytest.mark.parametrize("text", ["", "garbage", f"502 500 0:25 {FOLDER} /run/partage ro - tmpfs tmpfs rw"])
def test_a_process_whose_root_is_no_mount_proves_nothing(text: str) -> None:
    assert wrong(text) is None


def test_mounts_that_go_in_circles_end_the_search() -> None:
    assert wrong("1 2 0:1 / / rw - x x rw", "2 1 0:1 / / rw - x x rw") in (
        None,
        ("/run/partage", "/run/partage/lib", PRELOAD),
    )
    assert wrong("1 1 0:1 / / rw - x x rw", "2 1 0:1 / /run rw - x x rw", "3 2 0:1 / /run rw - x x rw") is not None


def test_names_with_spaces_are_unescaped() -> None:
    assert mounts(r"1 0 8:1 /a\040b /c\011d\134 ro - ext4 x rw")[0].root == "/a b"
    assert mounts(r"1 0 8:1 /a\040b /c\011d\134 ro - ext4 x rw")[0].point == "/c\td\\"


def test_where_a_path_of_ours_comes_from() -> None:
    seen = mounts("1 0 8:1 / / rw - ext4 x rw\n2 1 0:25 / /run rw - tmpfs x rw\n3 1 8:2 /lib /usr/local rw - ext4 x rw")
    assert mounted_from(seen, "/run/partage/containers/k") == ("0:25", "/partage/containers/k")
    assert mounted_from(seen, "/usr/local/lib/partage/1.0") == ("8:2", "/lib/lib/partage/1.0")
    assert mounted_from(seen, "/opt/x") == ("8:1", "/opt/x")
    assert mounted_from(seen, "/run") == ("0:25", "/")
    assert mounted_from((), "/run") is None


FIELDS = "S 1 2 3 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 4711 100 200 18446744073709551615 1 2 140720000000000 0 0"


@pytest.mark.parametrize("name", ["(sh)", "(a b)", "(ev) 1 2 (il)", "()"])
def test_a_birth_is_read_whatever_the_process_calls_itself(name: str) -> None:
    assert birth(f"77 {name} {FIELDS}") == Birth(4711, 140720000000000)


@pytest.mark.parametrize("text", ["", "77 (sh)", "77 (sh) S 1", "no parenthesis", f"77 (sh) {' '.join(['x'] * 40)}"])
def test_what_is_no_status_has_no_birth(text: str) -> None:
    assert birth(text) is None


ID, OTHER = "ab" * 32, "cd" * 32


@pytest.mark.parametrize(
    "path",
    [
        f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope",
        f"0::/kubepods/besteffort/pod1-2-3/{ID}",
        f"12:memory:/kubepods/pod1/{ID}\n1:name=systemd:/kubepods/pod1/{ID}",
        f"0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{ID}",
        f"0::/kubepods.slice/crio-{ID}.scope/container",
        f"0::/../../{ID}/inner",
        f"0::/{ID}/docker/{OTHER}",
    ],
)
def test_a_container_is_found_in_every_shape_of_a_control_group(path: str) -> None:
    assert container_of(path, {ID, OTHER}) == ID


@pytest.mark.parametrize(
    "path", ["", "0::/", f"0::/{ID}x", f"0::/{ID[:-1]}", f"{ID}", f"x:{ID}", f"0:{ID}", "0::/user.slice"]
)
def test_what_only_looks_like_an_id_is_none(path: str) -> None:
    assert container_of(path, {ID}) is None


def test_a_controllers_name_is_no_container() -> None:
    assert container_of("3:memory:/x", {"memory"}) is None


@given(st.text())
def test_any_text_is_read_without_a_fault(text: str) -> None:
    runs(text, {LIB})
    wrong_places(mounts(text), EXPECTED)
    birth(text)
    container_of(text, {ID})
    mapped_as(text, "/x")


@given(st.permutations(CONTAINER))
def test_the_order_of_lines_does_not_matter(lines: list[str]) -> None:
    assert wrong(*lines) == ()


# ---- Links -----------------------------------------------------------------------------------------------------------


PLACE = "/run/partage/lib"


@pytest.mark.parametrize(
    ("links", "leads_to"),
    [
        ({}, PLACE),
        ({"/run": "/var/run"}, "/var/run/partage/lib"),
        ({"/run": "var/run"}, "/var/run/partage/lib"),
        ({"/run": "/var/run/"}, "/var/run/partage/lib"),
        ({"/run": "../../x"}, "/x/partage/lib"),
        ({"/run": "."}, "/partage/lib"),
        ({"/run": "/"}, "/partage/lib"),
        ({"/run": "/a", "/a": "b", "/b/partage": "../c"}, "/c/lib"),
        ({"/run": "/var/run", "/var": "/private/var"}, "/private/var/run/partage/lib"),
        ({"/run": "/run"}, PLACE),
        ({"/run": "/a", "/a": "/run"}, PLACE),
        ({"/run": "/run/.."}, PLACE),
    ],
)
def test_where_a_place_is(links: Mapping[str, str], leads_to: str) -> None:
    assert led_to(PLACE, links.get) == leads_to


NAMES = st.sampled_from(["/run", "/var", "/a", "/a/b", "..", ".", "b", "", "/", "a/../b"])


@given(st.dictionaries(NAMES, NAMES), NAMES)
def test_any_links_end_at_an_absolute_path(links: Mapping[str, str], path: str) -> None:
    found = led_to(f"/{path}", links.get)
    assert found.startswith("/")
    assert found == f"/{path}" or not {"..", ""} & set(found[1:].split("/")) or found == "/"


# ---- Control groups --------------------------------------------------------------------------------------------------


UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
OLDER = "31 23 0:27 / /sys/fs/cgroup/memory rw shared:5 - cgroup cgroup rw,memory\n"
PART = "32 23 0:26 /kubepods /mnt/part rw - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (
            f"/pods.slice/pod1.slice/cri-containerd-{ID}.scope",
            f"pods.slice/pod1.slice/cri-containerd-{ID}.scope",
        ),
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
