"""``partage docker``: makes Docker and Podman create containers with our runtime, and undoes that."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
import msgspec

from partage_base.inventory_file import InventoryFile
from partage_cli.docker.daemon_json import RUNTIME, Registration
from partage_cli.docker.engine import (
    ENGINES,
    PID_FILES,
    DockerInfo,
    EngineName,
    daemon_pid,
    docker_info,
    read_again,
    running_by,
)
from partage_cli.docker.program import InstalledProgram, ProgramSettings, built
from partage_cli.docker.registration import DockerFile, PodmanFile
from partage_cli.docker.state import states
from partage_cli.main import FOUND_WRONG, SUBCOMMANDS
from partage_cli.tables import table
from partage_plugins.api.gpu import MIB, GpuPart
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.errors import Refused

_BELOW: Final = ("runc", "crun")
_DAEMON_JSON: Final = click.option(
    "--daemon-json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Docker's settings, where dockerd is started with --config-file.  [default: /etc/docker/daemon.json]",
)
_PID_FILE: Final = click.option(
    "--pid-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Of dockerd, where its settings say another one.  [default: /run/docker.pid]",
)


@click.group(name="docker", short_help=SUBCOMMANDS["docker"].summary)
def command() -> None:
    """Register partage's runtime with Docker and Podman. To be run as root, on the machine of the engine."""


@command.command(
    short_help="Register it.",
    epilog="""\b
Examples:
  sudo partage docker install
  docker run --runtime partage -e PARTAGE_SHARE=300 -e PARTAGE_MEMORY=4Gi IMAGE
  sudo partage docker install --default --swarm
""",
)
@click.option("--default", "is_default", is_flag=True, help="Every container is created by it, and cards are guarded.")
@click.option("--whole-cards", is_flag=True, help="With --default: let `--gpus` and CDI hand out whole cards still.")
@click.option("--swarm", is_flag=True, help="Let Swarm count this machine's shares and memory; implies --default.")
@click.option("--engine", "engines", type=click.Choice(ENGINES), multiple=True, help="[default: those that are here]")
@click.option(
    "--runtime-below",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="That creates the containers.  [default: runc, else crun]",
)
@_DAEMON_JSON
@_PID_FILE
@click.pass_obj
def install(  # noqa: PLR0913  one parameter for each word of the command line
    root: Path,
    *,
    is_default: bool,
    whole_cards: bool,
    swarm: bool,
    engines: tuple[EngineName, ...],
    runtime_below: Path | None,
    daemon_json: Path | None,
    pid_file: Path | None,
) -> None:
    """Have Docker and Podman know the runtime `partage`. May be repeated, also with other options.

    All else in their settings stays, and `uninstall` gives back the file as it was. A running dockerd reads it again;
    its containers go on. Settings that can't be read are not touched.
    """
    root, is_default = root.absolute(), is_default or swarm
    found, program = _here(engines), InstalledProgram(root)
    docker, podman = DockerFile(root, daemon_json), PodmanFile(root)
    wanted = Registration(program=str(program.path), is_default=is_default, resources=_resources(root) if swarm else ())
    if "docker" in found:
        _require_root()
        pid_file = _dockerds(docker, pid_file, lambda _: True)
        docker.require_fit(wanted)
    if "podman" in found:
        podman.require_fit()
    program.put(  # after every check: an active guard must not be turned off without the rest
        built(),
        ProgramSettings(
            socket=root / "run/partage/oci.sock",
            broker=root / "run/partage/broker.sock",
            runtime=_below() if runtime_below is None else runtime_below.absolute(),
            guard=is_default and not whole_cards,
        ),
    )
    if "docker" in found:
        _register_docker(root, docker, wanted, pid_file)
    if "podman" in found:
        podman.register(str(program.path), is_default=is_default)
        _say(f"podman: {podman.path} names the runtime {RUNTIME}{_of_default(is_default=is_default)}")
    _say(f"try:    {found[0]} run --runtime {RUNTIME} -e PARTAGE_SHARE=300 -e PARTAGE_MEMORY=4Gi IMAGE")


@command.command(short_help="Take the registration back.")
@_DAEMON_JSON
@_PID_FILE
@click.pass_obj
def uninstall(root: Path, *, daemon_json: Path | None, pid_file: Path | None) -> None:
    """Give engines their settings back. Containers that run go on; those of the runtime can't be started again."""
    root = root.absolute()
    docker, podman = DockerFile(root, daemon_json), PodmanFile(root)
    if docker.is_registered:
        pid_file = _dockerds(docker, pid_file, _knows)
        docker.have_it_forgotten()
        _have_it_read(
            root,
            pid_file,
            lambda info: not _knows(info),
            do="restart it, then: partage docker uninstall",
        )
        docker.unregister()
        _say(f"docker: {docker.path} is without the runtime {RUNTIME} again")
    if podman.unregister():
        _say(f"podman: {podman.path} is removed")
    program = InstalledProgram(root)
    reasons = [why for engine in ENGINES if (why := _why_needed(engine))]
    if reasons and program.is_there:
        _say(f"{program.path} stays: {'; '.join(reasons)}. Repeat this command afterwards")
    else:
        program.remove()


@command.command(short_help="Show what is registered, and whether it is in force.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@_DAEMON_JSON
@click.pass_obj
def status(root: Path, *, output: str, daemon_json: Path | None) -> int:
    """Show each engine that is here. Exits 3 where one is registered and does not have it in force."""
    found = states(DockerFile(root, daemon_json), PodmanFile(root), InstalledProgram(root))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        rows = [(each.engine, *map(_yes, (each.registered, each.in_force, each.default)), each.why) for each in found]
        click.echo(table(("ENGINE", "REGISTERED", "IN FORCE", "DEFAULT", "WHY"), rows), nl=False)
    return FOUND_WRONG if any(each.registered and not each.in_force for each in found) else 0


def _register_docker(root: Path, file: DockerFile, wanted: Registration, pid_file: Path | None) -> None:
    """Registers it and reloads dockerd; if dockerd does not accept it, the error tells how to undo it."""
    file.register(wanted, pid_file)
    _say(f"docker: {file.path} names the runtime {RUNTIME}{_of_default(is_default=wanted.is_default)}")
    back = f"`partage docker uninstall --daemon-json {file.path}` takes the file back"
    if not _have_it_read(root, pid_file, lambda info: _is_taken(info, wanted), do=back):
        return
    info = docker_info()
    if wanted.resources and info is not None and not info.resources:
        _say("docker: Swarm counts shares once dockerd has been restarted: systemctl restart docker")


def _have_it_read(root: Path, pid_file: Path | None, taken: Callable[[DockerInfo], bool], *, do: str) -> bool:
    """Whether dockerd runs; raises `Refused`, with what to `do`, if it has not accepted the change."""
    pid = daemon_pid(root, pid_file)
    if pid is None:
        _say("docker: no dockerd runs here; it takes this as it starts")
        return False
    if read_again(pid, taken) is None:
        raise Refused(f"dockerd (process {pid}) has not taken it; see its log: journalctl -u docker. {do}")
    return True


def _dockerds(file: DockerFile, named: Path | None, matters: Callable[[DockerInfo], bool]) -> Path | None:
    """Dockerd's pid file if it is not a usual one.

    Raises `Refused` if a dockerd that `matters` answers and no pid file names it.
    """
    pid_file = named.absolute() if named is not None else file.pid_file
    if daemon_pid(file.root, pid_file) is None and (info := docker_info()) is not None and matters(info):
        where = pid_file or " or ".join(str(file.root / each) for each in PID_FILES)
        raise Refused(
            f"a dockerd answers that {where} does not name; give its --pid-file, and --daemon-json if it is started "
            "with --config-file, or unset DOCKER_HOST if it is on another machine; nothing was changed"
        )
    return pid_file


def _require_root() -> None:
    info = docker_info()
    if info is not None and info.is_rootless:
        raise Refused(
            "this docker runs without root, so nothing keeps its containers to limits; use one that is root's"
        )


def _knows(info: DockerInfo) -> bool:
    """Whether that dockerd has our runtime."""
    return RUNTIME in {*(info.runtimes or {}), info.default}


def _is_taken(info: DockerInfo, wanted: Registration) -> bool:
    return RUNTIME in (info.runtimes or {}) and (info.default == RUNTIME) is wanted.is_default


def _here(wanted: tuple[EngineName, ...]) -> tuple[EngineName, ...]:
    found: tuple[EngineName, ...] = tuple(name for name in wanted or ENGINES if shutil.which(name))
    if missing := [name for name in wanted if name not in found]:
        raise Refused(f"{missing[0]} is not on the PATH; install it first")
    if not found:
        raise Refused("neither docker nor podman is on the PATH; install one first")
    return found


def _below() -> Path:
    found = next((path for name in _BELOW if (path := shutil.which(name))), None)
    if found is None:
        raise Refused(
            f"none of {', '.join(_BELOW)} is on the PATH, one of which creates the containers; name it: --runtime-below"
        )
    return Path(found)


def _resources(root: Path) -> tuple[str, ...]:
    known = InventoryFile(root).current()
    part: GpuPart | None = known.gpu if known is not None else None
    if part is None:
        raise Refused("which cards there are is not known, so Swarm can't count them; `partage up` first")
    cards = [card for card in part.cards if card.is_allocatable]
    memory = sum(card.memory_bytes // MIB for card in cards)
    return (f"partage-milli={WHOLE_MILLI * len(cards)}", f"partage-memory-mib={memory}")


def _why_needed(engine: EngineName) -> str:
    """Why the program is needed; empty if the engine does not know it and none of its containers runs by it."""
    if shutil.which(engine) is None:
        return ""
    info = docker_info() if engine == "docker" else None
    if info is not None and _knows(info):
        return "dockerd still has the runtime: systemctl reload docker"
    using = running_by(RUNTIME, engine)
    if using is None:
        return f"{engine} does not say what runs"
    return f"containers of {engine} run by it: {len(using)}" if using else ""


def _of_default(*, is_default: bool) -> str:
    return ", by which all containers are created" if is_default else ""


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _say(line: str) -> None:
    click.echo(line, err=True)
