"""The container as plugins see it, and their answer as changes of the request. Pure.

A driver other than a CRI proxy needs only these two: it converts what it knows of a container to a `Container`, and
applies `Changes` in its own format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from partage_base.cri.create_request import Changes, CreateRequest, resources_of
from partage_base.cri.runtime_config import RuntimeConfig
from partage_crishim.rules.errors import PlacementRefused
from partage_plugins.api import (
    Adjustment,
    Container,
    ContainerAllocation,
    ContainerName,
    Device,
    Gang,
    Mount,
    Namespace,
    PodName,
    PodRef,
    PodUid,
    Runtime,
    Security,
)
from partage_plugins.api.containers import LONGEST_PATH, DevicePermissions
from partage_plugins.api.keys import CONTAINER
from partage_plugins.codecs import encode_container
from partage_plugins.rules.paths import clean_path

_PERMISSIONS: Final[Mapping[str, DevicePermissions]] = {each: each for each in get_args(DevicePermissions)}


def security_of(request: CreateRequest, runtime_handler: str) -> Security:
    """The properties that decide whether limits can hold."""
    return Security(
        privileged=request.privileged,
        capabilities=tuple(map(_clean, request.capabilities)),
        host_pid=request.host_pid,
        runtime_handler=_clean(runtime_handler),
    )


def runtime_of(config: RuntimeConfig, handler: str) -> Runtime:
    """The part of the runtime's configuration that concerns a container of this handler."""
    return Runtime(program=config.program_of(handler), takes_cdi=config.takes_our_specs)


def shown(
    request: CreateRequest, record: ContainerAllocation, security: Security, runtime: Runtime, *, gang: Gang | None
) -> Container:
    """The request as plugins see it, without image volumes; refuses paths that cannot be represented."""
    return Container(
        key=record.key,
        pod=PodRef(namespace=Namespace(request.namespace), name=PodName(request.pod), uid=PodUid(request.uid)),
        name=ContainerName(request.container),
        attempt=request.attempt,
        image=_clean(request.image),
        annotations=_clean_map(request.annotations),
        labels=_clean_map(request.labels),
        env=tuple((_clean(name), value) for name, value in request.env),
        mounts=tuple(
            Mount(
                container_path=_inside(mount.container_path),
                host_path=_path(mount.host_path, at=mount.container_path),
                readonly=mount.readonly,
            )
            for mount in request.mounts
            if mount.host_path  # image volumes have none
        ),
        devices=tuple(
            Device(
                container_path=_inside(device.container_path),
                host_path=_path(device.host_path, at=device.container_path),
                permissions=_permissions(device.permissions),
            )
            for device in request.devices
        ),
        security=security,
        runtime=runtime,
        budgets=record.budgets,
        gang=gang,
    )


def changes_of(adjustment: Adjustment, record: ContainerAllocation, guard: Changes) -> Changes:
    """The plugins' answer, the device filter's changes to everything else, and the container's own record."""
    return Changes(
        env={**guard.env, **{name: value.encode() for name, value in adjustment.env.items()}},
        mounts=adjustment.mounts,
        devices=adjustment.devices,
        cdi=adjustment.cdi,
        annotations={**adjustment.annotations, CONTAINER: encode_container(record)},
        resources=resources_of(adjustment),
        without_mounts=guard.without_mounts,
    )


def _inside(path: str) -> str:
    """The path as the runtime will read it: normalized first, so that its length cannot hide its target."""
    return _path(clean_path(path), at=path)


def _path(path: str, *, at: str) -> str:
    if not path.startswith("/") or "\0" in path or len(path) > LONGEST_PATH:
        raise PlacementRefused(
            f"partage: the mount or device at {at!a:.200} has a path that plugins cannot be shown; allowed: an "
            f"absolute path of at most {LONGEST_PATH} characters, on the node and in the container"
        )
    return _clean(path)


def _permissions(text: str) -> DevicePermissions:
    ordered = "".join(letter for letter in "rwm" if letter in text)
    return _PERMISSIONS.get(ordered, "rwm")  # the runtimes' default


def _clean_map(texts: Mapping[str, str]) -> dict[str, str]:
    return {_clean(key): _clean(value) for key, value in texts.items()}


def _clean(text: str) -> str:
    return text if text.isascii() else text.encode(errors="surrogateescape").decode(errors="replace")
