"""What is said on the command line of `run` becomes an ordinary pod, in the native dialect. Pure.

Words and meanings are docker's wherever it has the same thing. What docker would guess and Kubernetes can't say is
refused with what to say instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from posixpath import join, normpath
from typing import Final, Literal

import msgspec
from msgspec import Struct

from partage_cli.machine.pods.pod import (
    PULLS,
    Amounts,
    Container,
    ContainerPort,
    EmptyDir,
    EnvVar,
    HostPath,
    Metadata,
    Pod,
    PullWhen,
    RestartPolicy,
    SecurityContext,
    Spec,
    Volume,
    VolumeMount,
)
from partage_cli.machine.pods.record import Restart
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary.keys import GPU_MEMORY, GPU_MILLI, GPUS, LIMIT_MILLI

CONTAINER: Final = "main"
WHOLE_MILLI: Final = 1000
_POLICIES: Final[Mapping[Restart, RestartPolicy]] = {
    "no": "Never",
    "on-failure": "OnFailure",
    "always": "Always",
    "unless-stopped": "Always",
}
_PORT: Final = re.compile(
    r"((?P<ip>[0-9.]+|\[[0-9a-fA-F:]+\]):)?(?P<host>[0-9]{1,5}):(?P<container>[0-9]{1,5})(/(?P<protocol>tcp|udp))?",
    re.ASCII,
)
_USER: Final = re.compile(r"(?P<user>[0-9]{1,9})(:(?P<group>[0-9]{1,9}))?", re.ASCII)
_RESTART: Final = re.compile(r"(?P<word>no|on-failure|always|unless-stopped)(:(?P<most>[1-9][0-9]{0,5}))?", re.ASCII)
_HIGHEST_PORT: Final = 65535
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME: Final = 40
_FLAGS: Final[Mapping[str, str]] = {
    GPU_MILLI: "--share",
    LIMIT_MILLI: "--limit",
    GPU_MEMORY: "--memory",
    GPUS: "--cards",
}
_OWN: Final = re.compile(r"partage\.dev/[a-z-]+")


class OptionWrong(PartageError):
    """An option that can't be: which one, and what is allowed."""


class Options(Struct, frozen=True, kw_only=True):
    """As they were said; `environment` is that of the user, `folder` where they are."""

    image: str
    arguments: Sequence[str] = ()
    share: int | None = None
    limit: int | None = None
    memory: str | None = None
    cards: int | None = None
    name: str = ""
    interactive: bool = False
    tty: bool = False
    restart: Restart = "no"
    env: Sequence[str] = ()
    env_lines: Sequence[str] = ()
    """Of files."""
    volumes: Sequence[str] = ()
    publish: Sequence[str] = ()
    workdir: str = ""
    user: str = ""
    entrypoint: str | None = None
    hostname: str = ""
    labels: Sequence[str] = ()
    cpus: str | None = None
    ram: str | None = None
    privileged: bool = False
    pull: PullWhen | None = None
    network: Literal["bridge", "host"] = "bridge"
    stop_timeout: int = 10
    environment: Mapping[str, str] = {}
    folder: str = "/"


def pod_of(options: Options) -> Pod:
    """The pod that these options mean; raises `OptionWrong`."""
    if options.network == "host" and options.publish:
        raise OptionWrong("--publish: with --network host what listens in the container is reached as it is; leave out")
    mounts, volumes = _volumes(options.volumes, options.folder)
    command, arguments = _command(options)
    container = Container(
        name=CONTAINER,
        image=options.image,
        command=command,
        args=arguments,
        working_dir=options.workdir,
        env=_env(options),
        ports=tuple(map(_port, options.publish)),
        resources=Amounts(limits=_limits(options)),
        volume_mounts=mounts,
        image_pull_policy=PULLS[options.pull or "missing"],
        stdin=options.interactive,
        tty=options.tty,
        security_context=_security(options),
    )
    spec = Spec(
        containers=(container,),
        volumes=volumes,
        restart_policy=_POLICIES[options.restart],
        host_network=options.network == "host",
        hostname=options.hostname,
        termination_grace_period_seconds=options.stop_timeout,
    )
    metadata = Metadata(name=options.name, labels=_labels(options.labels), annotations=_annotations(options))
    return checked(Pod(metadata=metadata, spec=spec))


def in_flags(refusal: str) -> str:
    """What is refused of such a pod, in the words by which it was asked for."""
    said = refusal.removeprefix("request: ").removeprefix("quantity: ")
    for key, flag in _FLAGS.items():
        said = said.replace(f"containers.{CONTAINER}.limits[{key}]", flag)
    return _OWN.sub(lambda match: _FLAGS.get(match[0], match[0]), said)


def restart_of(text: str) -> tuple[Restart, int]:
    """A policy in docker's words, and after how many failures it gives up (0: never)."""
    match = _RESTART.fullmatch(text)
    if match is None or (match["most"] and match["word"] != "on-failure"):
        raise OptionWrong(f"--restart {text}: say no, on-failure, on-failure:N, always or unless-stopped")
    return msgspec.convert(match["word"], Restart), int(match["most"] or 0)


def named_after_image(image: str) -> str:
    """For a document, in which a pod must have a name: `registry:5000/team/app:1.2` is `app`."""
    last = image.rpartition("/")[2].partition("@")[0].partition(":")[0].lower()
    return _NOT_IN_NAMES.sub("-", last)[:_LONGEST_NAME].strip("-") or "pod"


def checked(pod: Pod) -> Pod:
    """The same pod, once its fields are what their types say: constructors do not look."""
    try:
        return msgspec.convert(msgspec.to_builtins(pod), Pod)
    except msgspec.ValidationError as error:
        raise OptionWrong(f"this makes no pod: {error}") from None


def _limits(options: Options) -> dict[str, str | int]:
    share = options.share
    if share is None and options.memory is None and options.cards:
        share = options.cards * WHOLE_MILLI  # whole cards, as one who counts cards means it
    said = {
        GPU_MILLI: share,
        GPU_MEMORY: options.memory,
        GPUS: options.cards,
        "cpu": options.cpus,
        "memory": options.ram,
    }
    return {name: value for name, value in said.items() if value is not None}


def _annotations(options: Options) -> dict[str, str]:
    if options.limit is None:
        return {}
    if options.share is None and options.memory is None and options.cards is None:
        raise OptionWrong("--limit: is of a share of a card; say --share, --memory or --cards too")
    return {LIMIT_MILLI: str(options.limit)}


def _command(options: Options) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What replaces the image's entrypoint, and what its arguments are."""
    arguments = tuple(map(_literal, options.arguments))
    if options.entrypoint is None:
        return (), arguments
    if options.entrypoint:
        return (_literal(options.entrypoint),), arguments
    if not arguments:
        raise OptionWrong("--entrypoint: an empty one leaves nothing to run; say a command after the image")
    return arguments, ()


def _env(options: Options) -> tuple[EnvVar, ...]:
    """A later one replaces an earlier one; a name alone takes the user's value, where there is one."""
    found: dict[str, str] = {}
    for said in (*options.env_lines, *options.env):
        name, equals, value = said.partition("=")
        if not name or "\0" in said or name != name.strip():
            raise OptionWrong(f"--env {said!r}: say NAME=VALUE, or NAME for the value that you have")
        if equals or name in options.environment:
            found[name] = value if equals else options.environment[name]
    return tuple(EnvVar(name=name, value=_literal(value)) for name, value in found.items())


def _literal(text: str) -> str:
    """As it stands, in a pod: there `$(NAME)` is a variable's value, and `$$` a dollar."""
    return text.replace("$", "$$")


def env_lines(text: str) -> tuple[str, ...]:
    """Of an `--env-file`, as docker reads it: no quotes, comments on lines of their own."""
    lines = (line.lstrip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _volumes(said: Iterable[str], folder: str) -> tuple[tuple[VolumeMount, ...], tuple[Volume, ...]]:
    mounts: list[VolumeMount] = []
    volumes: list[Volume] = []
    for number, each in enumerate(said):
        source, target, read_only = _volume(each)
        name = f"v{number}"
        if source and not source.startswith(("/", ".", "~")):
            raise OptionWrong(f"--volume {each}: there are no named volumes; say a path, as /data/{source}:{target}")
        if source.startswith("~"):
            raise OptionWrong(f"--volume {each}: a shell that does not know ~ here leaves it; write the whole path")
        here = HostPath(path=normpath(join(folder, source))) if source else None
        volumes.append(Volume(name=name, host_path=here, empty_dir=None if here else EmptyDir()))
        mounts.append(VolumeMount(name=name, mount_path=target, read_only=read_only))
    return tuple(mounts), tuple(volumes)


def _volume(said: str) -> tuple[str, str, bool]:
    """Source, which is empty for a folder that lives as long as the pod, target, and whether it may only be read."""
    parts = said.split(":")
    mode = parts.pop() if len(parts) == 3 else "rw"  # noqa: PLR2004  the third part
    source, target = parts if len(parts) == 2 else ("", parts[0])  # noqa: PLR2004
    if len(parts) > 2 or not target.startswith("/") or mode not in {"rw", "ro"} or (len(parts) == 2 and not source):  # noqa: PLR2004
        raise OptionWrong(f"--volume {said}: say HERE:THERE, HERE:THERE:ro or THERE, where THERE is a whole path")
    return source, target, mode == "ro"


def _port(said: str) -> ContainerPort:
    match = _PORT.fullmatch(said)
    if match is None or not all(0 < int(match[name]) <= _HIGHEST_PORT for name in ("host", "container")):
        raise OptionWrong(
            f"--publish {said}: say HOST:CONTAINER or IP:HOST:CONTAINER, of ports 1-65535, and /udp or not"
        )
    return ContainerPort(
        container_port=int(match["container"]),
        host_port=int(match["host"]),
        host_ip=(match["ip"] or "").strip("[]"),
        protocol="UDP" if match["protocol"] == "udp" else "TCP",
    )


def _security(options: Options) -> SecurityContext:
    context = SecurityContext(privileged=options.privileged)
    if not options.user:
        return context
    match = _USER.fullmatch(options.user)
    if match is None:
        raise OptionWrong(f"--user {options.user}: say UID or UID:GID in numbers; names are the image's own")
    group = None if match["group"] is None else int(match["group"])
    return msgspec.structs.replace(context, run_as_user=int(match["user"]), run_as_group=group)


def _labels(said: Iterable[str]) -> dict[str, str]:
    labels = {name: value for name, _, value in (each.partition("=") for each in said)}
    if "" in labels:
        raise OptionWrong(f"--label ={labels['']}: say NAME=VALUE")
    return labels
