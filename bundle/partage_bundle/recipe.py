"""The contents of a tree: machines, Debian's packages, the files that are taken, and what is left out. Pure.

The interpreter is Debian's, with the glibc that it was built for, so that nothing depends on the node's own system.
Every library is in one folder under the name that programs load it by; a tree has no symbolic links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PYTHON: Final = "3.11"
SUITE: Final = "bookworm"
PREFIX: Final = "/opt/partage"
PACKAGES: Final = "lib/python3/dist-packages"
"""Where Debian's interpreter looks for packages, relative to its prefix."""


@dataclass(frozen=True)
class Machine:
    name: str
    debian: str
    """Debian's name for it, which is also OCI's."""
    loader: str
    elf: int
    """The machine number in ELF headers."""

    @property
    def triplet(self) -> str:
        return f"{self.name}-linux-gnu"

    @property
    def wheels(self) -> str:
        """The platform in uv's notation, with the glibc of the suite."""
        return f"{self.name}-manylinux_2_36"


MACHINES: Final = {
    machine.name: machine
    for machine in (
        Machine("x86_64", "amd64", "ld-linux-x86-64.so.2", 62),
        Machine("aarch64", "arm64", "ld-linux-aarch64.so.1", 183),
    )
}


@dataclass(frozen=True)
class Tree:
    name: str
    user: int
    """The user that a container of its image runs as."""
    extra: str
    """The extra of pyproject.toml that its lock is made from."""
    is_for_nodes: bool
    """Whether it contains the preload library, partage-oci and the systemd units."""
    leaves_out: frozenset[str]
    """Programs that the project declares and the tree omits."""


_OF_NODES: Final = frozenset(
    {"partage-advertiser", "partage-broker", "partage-crishim", "partage-dra", "partage-installer"}
)
_ALONE: Final = frozenset({"partage-agent"})
"""Only for a machine without a cluster, where it places, too: node and scheduler in one, and in no tree."""
_OF_THE_SCHEDULER: Final = frozenset({"partage-scheduler", "partage-sharepods", "partage-ui"})
TREES: Final = {
    tree.name: tree
    for tree in (
        Tree("node", 0, "node", is_for_nodes=True, leaves_out=_OF_THE_SCHEDULER | _ALONE),
        Tree(
            "scheduler",
            65532,
            "scheduler",
            is_for_nodes=False,
            leaves_out=_OF_NODES | _ALONE,
        ),
    )
}

LOADER: Final = "LOADER"
"""Stands for the machine's own loader, whose name differs."""
_LIBRARIES: Final = {
    # The stubs are included because a driver's library needs them, and must not get those of another glibc.
    "libc6": (
        LOADER,
        "libc.so.6",
        "libdl.so.2",
        "libm.so.6",
        "libnss_dns.so.2",
        "libnss_files.so.2",
        "libpthread.so.0",
        "libresolv.so.2",
        "librt.so.1",
        "libutil.so.1",
    ),
    "libexpat1": ("libexpat.so.1",),
    "libffi8": ("libffi.so.8",),
    "libgcc-s1": ("libgcc_s.so.1",),
    "libssl3": ("libcrypto.so.3", "libssl.so.3"),
    "libstdc++6": ("libstdc++.so.6",),
    "zlib1g": ("libz.so.1",),
}
INTERPRETER: Final = ("libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal")
LICENCES: Final = {"libgcc-s1": "gcc-12-base", "libstdc++6": "gcc-12-base"}
"""Packages whose licence is in another one."""


def libraries(machine: Machine) -> dict[str, tuple[str, ...]]:
    """The names of the files to take, by package."""
    return {
        package: tuple(machine.loader if name == LOADER else name for name in names)
        for package, names in _LIBRARIES.items()
    }


PACKAGES_OF_DEBIAN: Final = tuple(sorted({*INTERPRETER, *_LIBRARIES, *LICENCES.values()}))
"""All packages that a tree takes anything from."""


# No daemon needs these, and some would need one more library each.
_MODULES: Final = frozenset(
    {
        "curses",
        "dbm",
        "distutils",
        "ensurepip",
        "idlelib",
        "lib2to3",
        "pydoc_data",
        "sqlite3",
        "test",
        "tkinter",
        "turtledemo",
        "venv",
        "wsgiref",
        "xmlrpc",
        "crypt.py",
        "nntplib.py",
        "sitecustomize.py",
        "turtle.py",
    }
)
_EXTENSIONS: Final = frozenset(
    {
        "_bz2",
        "_crypt",
        "_ctypes_test",
        "_curses",
        "_curses_panel",
        "_dbm",
        "_lzma",
        "_sqlite3",
        "_testbuffer",
        "_testcapi",
        "_testclinic",
        "_testimportmultiple",
        "_testinternalcapi",
        "_testmultiphase",
        "_uuid",
        "_xxtestfuzz",
        "audioop",
        "nis",
        "ossaudiodev",
        "readline",
        "xxlimited",
        "xxlimited_35",
    }
)
_SUFFIXES: Final = (".a", ".c", ".cc", ".cpp", ".h", ".pxd", ".pxi", ".pyc", ".pyi", ".pyx")
_INSTALLER: Final = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json"})
"""An installer's own records, which list other files than a tree has, and paths of the builder."""
_OF_THE_SOURCES: Final = (
    "partage_isolation/library/objects/",
    "partage_isolation/library/page/",
    "partage_isolation/library/preload/",
    "partage_oci/programs/",
    "partage_oci/runtime/",
)
"""Our C sources, and build results that the checkout may have: a tree gets its own."""


def is_kept_of_python(path: str) -> bool:
    """Whether to keep a file of Debian's lib/python3.11, by its path below it."""
    first, *rest = path.split("/")
    if first == "lib-dynload":
        return rest[0].split(".")[0] not in _EXTENSIONS
    return first not in _MODULES and not first.startswith("config-") and not path.endswith(_SUFFIXES)


def is_kept_of_wheels(path: str) -> bool:
    """Whether to keep a file of an installed wheel, by its path below dist-packages."""
    folders = path.split("/")[:-1]
    name = path.rpartition("/")[2]
    if path.startswith(("bin/", *_OF_THE_SOURCES)) or {"tests", "__pycache__"} & set(folders):
        return False
    if folders and folders[-1].endswith(".dist-info"):
        return name not in _INSTALLER
    # Our own C files stay: `partage docker install` compiles them on the machine that needs them.
    return path.startswith("partage_") or not (path.endswith(_SUFFIXES) or name in {".lock", "py.typed"})
