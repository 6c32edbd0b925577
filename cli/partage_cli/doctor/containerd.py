"""How the container runtime is set up: who runs containers by default, CDI, and NVIDIA's own runtime.

containerd's files are read as it reads them: one file and what it imports, later ones over earlier ones.
"""

from __future__ import annotations

import glob
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, TypeVar

import msgspec

from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, text_of
from partage_cli.doctor.runtimes import Runtime, runtime_at

T = TypeVar("T")

CONFIG: Final = "/etc/containerd/config.toml"
NVIDIA_CONFIG: Final = "/etc/nvidia-container-runtime/config.toml"
_NVIDIA_PROGRAM: Final = "nvidia-container-runtime"
_OUR_SPECS: Final = "/run/cdi"
_CDI_BY_DEFAULT: Final = 2  # containerd's major version from which CDI is on
_MOST_IMPORTS: Final = 64
_ENVVAR: Final = "accept-nvidia-visible-devices-envvar-when-unprivileged"


class _Handler(msgspec.Struct, frozen=True):
    options: Mapping[str, object] = {}


class _Containers(msgspec.Struct, frozen=True):
    default_runtime_name: str | None = None
    runtimes: Mapping[str, _Handler] = {}


class _Cri(msgspec.Struct, frozen=True):
    containerd: _Containers = _Containers()
    enable_cdi: bool | None = None
    cdi_spec_dirs: tuple[str, ...] | None = None


class _Plugins(msgspec.Struct, frozen=True):
    before_2: _Cri = msgspec.field(name="io.containerd.grpc.v1.cri", default=_Cri())
    from_2: _Cri = msgspec.field(name="io.containerd.cri.v1.runtime", default=_Cri())


class _Config(msgspec.Struct, frozen=True):
    imports: tuple[str, ...] = ()
    plugins: _Plugins = _Plugins()


class _NvidiaConfig(msgspec.Struct, frozen=True):
    believes_variables: bool = msgspec.field(name=_ENVVAR, default=True)


@dataclass(frozen=True, kw_only=True)
class ContainerdFacts:
    """What its files say, and who it is."""

    files: tuple[str, ...] = ()
    handler: str = "runc"
    program: str = ""
    """What the default handler runs, where that is said."""
    cdi: bool | None = None
    spec_folders: tuple[str, ...] = ("/etc/cdi", "/var/run/cdi")
    runtime: Runtime | None = None
    """None: it did not answer us."""

    @property
    def runs_nvidia(self) -> bool:
        """Whether every pod is run by NVIDIA's runtime."""
        return PurePath(self.program).name.startswith(_NVIDIA_PROGRAM) or self.handler.startswith("nvidia")


def container_runtime(node: LocalNode) -> Iterator[Finding]:
    """Two findings on containerd, one where its files cannot be read, none on other runtimes."""
    about = About("runtime-default", (str(node.path(CONFIG)),))
    if "containerd" not in str(node.crishim.runtime):
        yield about.unknown(f"{node.crishim.runtime} is not containerd's, and no other runtime's files are known here")
        return
    facts = containerd_facts(node)
    if isinstance(facts, Unseen):
        yield (
            about.ok("containerd has no file, and its own defaults hold")
            if facts.is_missing
            else about.unknown(str(facts))
        )
        return
    yield default_runtime(facts, node.crishim.nvidia_is_default)
    yield cdi(facts)


def default_runtime(facts: ContainerdFacts, crishim_knows: bool) -> Finding:  # noqa: FBT001  a fact like the others
    """Where NVIDIA's runtime runs every pod, images can ask for cards, and crishim must know."""
    about = About("runtime-default", facts.files)
    if not facts.runs_nvidia:
        return about.ok(f"pods that name no handler are run by {facts.handler}")
    if crishim_knows:
        return about.ok(f"{facts.handler} is NVIDIA's and runs every pod; crishim knows")
    return about.wrong(
        f"{facts.handler} is NVIDIA's and runs every pod, and crishim does not know: images can take every card",
        do="set nvidia_is_default = true under [crishim] in partage.toml, or change containerd's default_runtime_name",
    )


def cdi(facts: ContainerdFacts) -> Finding:
    """Whether containerd looks for devices where we write them."""
    about = About("runtime-cdi", facts.files)
    is_on = facts.cdi if facts.cdi is not None else _on_by_default(facts.runtime)
    if is_on is None:
        return about.unknown(
            "no file says enable_cdi, and containerd did not say its version: before 2.0 CDI is off",
            do="ask again as root, or set enable_cdi = true",
        )
    if not is_on:
        return about.warning(
            "CDI is off, and cards are given by it unless NVIDIA's runtime or PARTAGE_GPU_ATTACH=raw does it",
            do="set enable_cdi = true in containerd's configuration and restart it",
        )
    if not any(each.removeprefix("/var").rstrip("/") == _OUR_SPECS for each in facts.spec_folders):
        return about.wrong(
            f"containerd looks for CDI devices in {', '.join(facts.spec_folders)} and not in /var/run/cdi",
            do="add /var/run/cdi to cdi_spec_dirs in containerd's configuration and restart it",
        )
    return about.ok("CDI is on, and containerd looks in /var/run/cdi")


def nvidia_runtime(node: LocalNode) -> Iterator[Finding]:
    """Whether NVIDIA's runtime believes a variable of any container."""
    path = node.path(NVIDIA_CONFIG)
    about, text = About("runtime-variables", (str(path),)), text_of(path)
    if isinstance(text, Unseen):
        yield about.ok("NVIDIA's container runtime is not set up here") if text.is_missing else about.unknown(str(text))
        return
    try:
        believes = msgspec.toml.decode(text, type=_NvidiaConfig).believes_variables
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        yield about.unknown(f"{path}: {_first_line(error)}", do="mend it: NVIDIA's runtime fails on it, too")
        return
    yield variables(about, believes=believes, guarded=node.crishim.guard != "off")


def variables(about: About, *, believes: bool, guarded: bool) -> Finding:
    """By what NVIDIA's runtime believes, and whether crishim blanks the variable."""
    if not believes:
        return about.ok("unprivileged containers cannot ask for cards by variable")
    if guarded:
        return about.ok("unprivileged containers may ask for cards by variable; crishim's guard blanks it")
    return about.wrong(
        "unprivileged containers may ask for cards by NVIDIA_VISIBLE_DEVICES, and crishim's guard is off",
        do=f'set {_ENVVAR} = false in {about.looked_at[0]}, or take guard = "off" out of partage.toml',
    )


def containerd_facts(node: LocalNode) -> ContainerdFacts | Unseen:
    """From its file and what that imports; the first that cannot be read ends it."""
    files: list[str] = []
    found: list[_Cri] = []
    waiting = [CONFIG]
    while waiting and len(files) < _MOST_IMPORTS:
        name = waiting.pop(0)
        if name in files:
            continue
        config = _config(node.path(name))
        if isinstance(config, Unseen):
            return config
        files.append(name)
        found += [config.plugins.before_2, config.plugins.from_2]
        waiting += [each for pattern in config.imports for each in _imported(node, name, pattern)]
    asked = runtime_at(node.path(node.crishim.runtime))
    return _merged(tuple(str(node.path(each)) for each in files), found, None if isinstance(asked, Unseen) else asked)


def _merged(files: tuple[str, ...], found: list[_Cri], runtime: Runtime | None) -> ContainerdFacts:
    handler = _last([each.containerd.default_runtime_name for each in found]) or "runc"
    programs = [each.containerd.runtimes[handler].options for each in found if handler in each.containerd.runtimes]
    program = _last([options.get("BinaryName") for options in programs])
    return ContainerdFacts(
        files=files,
        handler=handler,
        program=program if isinstance(program, str) else "",
        cdi=_last([each.enable_cdi for each in found]),
        spec_folders=_last([each.cdi_spec_dirs for each in found]) or ContainerdFacts.spec_folders,
        runtime=runtime,
    )


def _last(values: list[T | None]) -> T | None:
    return next((value for value in reversed(values) if value is not None), None)


def _config(path: Path) -> _Config | Unseen:
    text = text_of(path)
    if isinstance(text, Unseen):
        return text
    try:
        return msgspec.toml.decode(text, type=_Config)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return Unseen(path, _first_line(error))


def _imported(node: LocalNode, importer: str, pattern: str) -> list[str]:
    """Relative patterns are meant from the importing file's folder."""
    inside = posixpath.normpath(PurePath(importer).parent / pattern).lstrip("/")
    found = glob.glob(inside, root_dir=node.root)  # noqa: PTH207  which raises nothing, whatever the pattern is
    return [f"/{name}" for name in sorted(found)]


def _on_by_default(runtime: Runtime | None) -> bool | None:
    major = "" if runtime is None else runtime.version.removeprefix("v").partition(".")[0]
    return int(major) >= _CDI_BY_DEFAULT if major.isdecimal() else None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["cannot be read"])[0][:160]
