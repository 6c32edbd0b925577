"""Decodes kubeconfig files as kubectl does: several files are merged, and one context is chosen. Pure.

The first file that defines a name wins, in the order of `$KUBECONFIG`. A relative path is relative to the folder of its
file. A value of a wrong type is an error with its location: if it were ignored, calls would use the wrong identity.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Final, TypeVar

import msgspec

from partage_base.kube.errors import BadAccess
from partage_base.thread_safety import thread_safe

MOST_DEPTH: Final = 64
T = TypeVar("T")
Text = Annotated[str, msgspec.Meta(min_length=1)]


class Variable(msgspec.Struct, frozen=True):
    name: Text
    value: str = ""


class ExecConfig(msgspec.Struct, frozen=True, rename="camel"):
    """A program that prints credentials."""

    command: Text
    api_version: str
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(msgspec.Struct, frozen=True):
    name: str
    config: dict[str, str] | None = None


class User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    impersonate: str = msgspec.field(default="", name="as")
    username: str = ""
    password: str = ""
    auth_provider: AuthProvider | None = None
    exec: ExecConfig | None = None


class Extension(msgspec.Struct, frozen=True):
    name: str
    extension: Any = None


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[Extension] | None = None


class Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context | None = None


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    """The document; kubectl writes null for an empty list."""

    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


@dataclass(frozen=True)
class Kubeconfig:
    """One file, or several merged."""

    clusters: Mapping[str, Cluster]
    users: Mapping[str, User]
    contexts: Mapping[str, Context]
    current: str


@dataclass(frozen=True)
class Chosen:
    """Cluster and user of the current context. Paths are relative to the process's working directory."""

    cluster: Cluster
    user: User


def decoded(file: PurePath, text: bytes) -> Kubeconfig:
    """Decodes one file; raises `BadAccess`."""
    try:
        document = msgspec.convert(_plain(file, text), thread_safe(_Document | None)) or _Document()
    except msgspec.ValidationError as error:
        raise BadAccess(f"{file}: {error}; correct it") from None
    near = file.parent
    return Kubeconfig(
        _by_name(file, "clusters", ((each.name, _near(each.cluster, near)) for each in document.clusters or ())),
        _by_name(file, "users", ((each.name, _users_near(each.user, near)) for each in document.users or ())),
        _by_name(file, "contexts", ((each.name, each.context or Context()) for each in document.contexts or ())),
        document.current_context or "",
    )


def merged(files: Iterable[Kubeconfig]) -> Kubeconfig:
    """Merges files; the first that defines a name wins."""
    known = tuple(files)
    return Kubeconfig(
        ChainMap(*(dict(each.clusters) for each in known)),
        ChainMap(*(dict(each.users) for each in known)),
        ChainMap(*(dict(each.contexts) for each in known)),
        next((each.current for each in known if each.current), ""),
    )


def chosen(config: Kubeconfig) -> Chosen:
    """The cluster and user of the current context; raises `BadAccess`."""
    if not config.current:
        raise BadAccess("it has no current-context; set one with: kubectl config use-context NAME")
    context = config.contexts.get(config.current)
    if context is None:
        raise BadAccess(f"its current-context is {config.current}, and no context has the name {config.current}")
    if not context.cluster:
        raise BadAccess(f"its context {config.current} names no cluster")
    cluster = config.clusters.get(context.cluster)
    if cluster is None:
        raise BadAccess(f"its context {config.current} wants a cluster, and none has the name {context.cluster}")
    user = config.users.get(context.user) if context.user else User()
    if user is None:
        raise BadAccess(f"its context {config.current} wants a user, and none has the name {context.user}")
    if not cluster.server:
        raise BadAccess("its cluster has no server; say its address")
    return Chosen(cluster, user)


def _by_name(file: PurePath, what: str, pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, value in pairs:
        if name in found:
            raise BadAccess(f"{file} has two {what} of the name {name}; take one out")
        found[name] = value
    return found


def _near(cluster: Cluster | None, folder: PurePath) -> Cluster:
    if cluster is None:
        return Cluster()
    return msgspec.structs.replace(cluster, certificate_authority=_path(folder, cluster.certificate_authority))


def _users_near(user: User | None, folder: PurePath) -> User:
    if user is None:
        return User()
    run = user.exec
    if run is not None and "/" in run.command:  # one without a slash is searched in $PATH
        run = msgspec.structs.replace(run, command=_path(folder, run.command))
    return msgspec.structs.replace(
        user,
        client_certificate=_path(folder, user.client_certificate),
        client_key=_path(folder, user.client_key),
        token_file=_path(folder, user.token_file),
        exec=run,
    )


def _path(folder: PurePath, path: str) -> str:
    return str(folder / path) if path else ""


def _plain(file: PurePath, text: bytes) -> object:
    """Parses YAML with a bounded depth: libyaml recurses until its stack overflows, and kills the process."""
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415  a pod reads its service account alone, without YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:
                raise BadAccess(f"{file} is nested too deep, more than {MOST_DEPTH} levels; correct it")
        return yaml.load(text, Loader=loader)  # noqa: S506  (a safe one)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)  # the location alone: the text there may be a secret
        where = "it can't be read" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
        raise BadAccess(f"{file} is no YAML: {where}; correct it") from None
