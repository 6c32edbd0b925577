"""Gathers how kubelet was started and will be started: from its process, its systemd unit and its files.

If no systemd unit is found, the files in which packages keep kubelet's flags are read from their usual paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

import msgspec

from partage_cli.doctor.endpoint import FIELD, FLAG, EndpointFacts, Say, Setup, judged
from partage_cli.doctor.findings import Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, names_in, text_of
from partage_cli.doctor.units import Source, UnitService, Word, last_use, split_leniently
from partage_cli.doctor.variables import environment_file

_UNIT: Final = "kubelet.service"
_UNIT_FOLDERS: Final = tuple(
    f"/{each}/systemd/system" for each in ("etc", "run", "usr/local/lib", "usr/lib", "lib")
)  # the first folder with a file of that name wins
FLAG_FILES: Final = ("/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet")
USUAL_CONFIG: Final = "/var/lib/kubelet/config.yaml"
_PROGRAM: Final = "kubelet"


class _KubeletConfiguration(msgspec.Struct, frozen=True):
    """The one field that matters here; all others are ignored."""

    containerRuntimeEndpoint: str | None = None  # noqa: N815  as kubelet writes it


def endpoint(node: LocalNode) -> Iterator[Finding]:
    """Where kubelet's runtime endpoint is set, and to which value."""
    yield judged(endpoint_facts(node))


def endpoint_facts(node: LocalNode) -> EndpointFacts:
    """Facts about the running kubelet and about the next one."""
    return EndpointFacts(wanted=str(node.crishim.listen), now=_now(node), next=_next(node))


def process_of(node: LocalNode) -> tuple[int, list[str]] | Unseen | None:
    """Kubelet's PID and its command line; None if it is not running."""
    numbers = names_in(node.path("proc"))
    if isinstance(numbers, Unseen):
        return None if numbers.is_missing else numbers
    for number in filter(str.isdecimal, numbers):
        if text_of(node.path(f"proc/{number}/comm")) != f"{_PROGRAM}\n":
            continue
        line = text_of(node.path(f"proc/{number}/cmdline"))
        if isinstance(line, Unseen):
            if line.is_missing:
                continue
            return line
        argv = line.removesuffix("\0").split("\0")
        if PurePath(argv[0]).name == _PROGRAM:
            return int(number), argv
    return None


def _now(node: LocalNode) -> Setup | None:
    process = process_of(node)
    if process is None:
        return None
    if isinstance(process, Unseen):
        return Setup(unseen=(str(process.path),))
    number, argv = process
    return _setup(node, [Word(each, f"the command line of kubelet, process {number}") for each in argv])


def _next(node: LocalNode) -> Setup | None:
    service = _service(node)
    if service is not None:
        return _setup(node, service)
    says = [say for path in FLAG_FILES for say in _in_flag_file(node, path)]
    return Setup(says=tuple(says), config=USUAL_CONFIG) if says else None


def _in_flag_file(node: LocalNode, path: str) -> Iterator[Say]:
    text = text_of(node.path(path))
    if isinstance(text, Unseen):
        return
    for value in environment_file(text).values():
        use = last_use([Word(each, str(node.path(path))) for each in split_leniently(value)], FLAG)
        if use is not None:
            yield Say(use.where, use.text, by_flag=True)


def _setup(node: LocalNode, argv: list[Word]) -> Setup:
    config, folder = last_use(argv, "config"), last_use(argv, "config-dir")
    says: list[Say] = []
    unseen: list[str] = []
    for file in config_files(node, config, folder, unseen):
        said = configured(node, file)
        if isinstance(said, Unseen):
            unseen.append(str(said))
        elif said:
            says.append(Say(str(node.path(file)), said))
    flag = last_use(argv, FLAG)
    if flag is not None:
        says.append(Say(flag.where, flag.text, by_flag=True))
    return Setup(tuple(says), tuple(unseen), str(node.path(config.text if config else USUAL_CONFIG)))


def config_files(node: LocalNode, config: Word | None, folder: Word | None, unseen: list[str]) -> Iterator[str]:
    """The files in ascending precedence; a folder that can't be listed is added to `unseen`."""
    if config is not None and config.text:
        yield config.text
    if folder is not None and folder.text:
        names = names_in(node.path(folder.text))
        if isinstance(names, Unseen):
            unseen += [] if names.is_missing else [str(names)]
            return
        yield from (f"{folder.text}/{name}" for name in names if name.endswith(".conf"))


def configured(node: LocalNode, path: str) -> str | Unseen | None:
    """The endpoint in a configuration file. It is read as YAML, which includes JSON."""
    text = text_of(node.path(path))
    if isinstance(text, Unseen):
        return text
    try:
        # PyYAML is a dependency of the API server's client, which the command line needs anyway.
        return msgspec.yaml.decode(text, type=_KubeletConfiguration).containerRuntimeEndpoint
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return Unseen(node.path(path), f"is no configuration of kubelet ({FIELD}): {str(error).splitlines()[0]:.120}")


def _service(node: LocalNode) -> list[Word] | None:
    """The command line that systemd would start; None without a kubelet unit."""
    service, files = UnitService(), list(_unit_files(node))
    if not files:
        return None
    for source in files:
        service.add(source)
    found: dict[str, Source] = {}
    for named in service.environment_files:
        path = node.path(named.removeprefix("-"))
        text = text_of(path)
        if not isinstance(text, Unseen):
            found[named] = Source(str(path), text)
    return service.command_line(found)


def _unit_files(node: LocalNode) -> Iterator[Source]:
    """The unit, then its drop-ins in the order of their names."""
    units = (_source(node, f"{folder}/{_UNIT}") for folder in _UNIT_FOLDERS)
    unit = next((each for each in units if each is not None), None)
    dropins: dict[str, str] = {}
    for folder in reversed(_UNIT_FOLDERS):
        names = names_in(node.path(f"{folder}/{_UNIT}.d"))
        if not isinstance(names, Unseen):
            dropins |= {name: f"{folder}/{_UNIT}.d/{name}" for name in names if name.endswith(".conf")}
    if unit is not None:
        yield unit
        yield from filter(None, (_source(node, dropins[name]) for name in sorted(dropins)))


def _source(node: LocalNode, path: str) -> Source | None:
    text = text_of(node.path(path))
    return None if isinstance(text, Unseen) else Source(str(node.path(path)), text)
