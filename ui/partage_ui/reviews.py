"""Whose a token is, and what its user may see, by reviews of the API server; access is cached for a minute."""

from __future__ import annotations

import asyncio
import binascii
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from typing import Final, Protocol

import msgspec
from msgspec import Struct, field

from partage_base.kube import ApiServer, KubeError
from partage_ui.facts import Facts, Scope
from partage_ui.viewers import Person, Right, Viewer

LASTS_S: Final = 60.0
MOST_NAMESPACES: Final = 64
"""Most namespaces reviewed for a viewer who may not see all; beyond that they must name one."""
AT_ONCE: Final = 8
MOST_LOGINS: Final = 4
"""Tokens reviewed at once; more are rejected, so that nobody floods the API server through us."""
_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_ALL: Final = Right("list", "pods")
_NODES: Final = Right("list", "nodes")
_ACCOUNT: Final = "system:serviceaccount:"


class Busy(Exception):
    """Too many viewers are signing in at once."""


class Door(Protocol):
    """Authenticates viewers, and determines what they may see."""

    async def enter(self, token: str) -> Person | None:
        """None for an invalid token. Raises `KubeError` and `Busy`."""
        ...

    async def scope(self, viewer: Viewer, facts: Facts, namespace: str) -> Scope:
        """What this viewer may see; `namespace` is the one requested, empty for all."""
        ...


class _TokenStatus(Struct, frozen=True):
    authenticated: bool = False
    user: Person = Person()


class _TokenReview(Struct, frozen=True):
    status: _TokenStatus = field(default_factory=_TokenStatus)


class _AccessStatus(Struct, frozen=True):
    allowed: bool = False


class _AccessReview(Struct, frozen=True):
    status: _AccessStatus = field(default_factory=_AccessStatus)


class _Claims(Struct, frozen=True):
    exp: float | None = None


class ClusterDoor:
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._logins = 0

    async def enter(self, token: str) -> Person | None:
        if self._logins >= MOST_LOGINS:
            raise Busy
        self._logins += 1
        try:
            return await self._person_of(token)
        finally:
            self._logins -= 1

    async def _person_of(self, token: str) -> Person | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await self._server.create(_TOKENS, body, _TokenReview)).status
        return status.user if status.authenticated and status.user.username else None

    async def scope(self, viewer: Viewer, facts: Facts, namespace: str) -> Scope:
        try:
            return await self._scope(viewer, facts, namespace)
        except KubeError as error:
            why = f"What you may see could not be asked, so nothing is shown: {error}"
            return Scope(frozenset(), nodes=False, note=why)

    async def _scope(self, viewer: Viewer, facts: Facts, namespace: str) -> Scope:
        sees_all, nodes = await self._may(viewer, _ALL), await self._may(viewer, _NODES)
        if sees_all:
            return Scope(None, nodes=nodes)
        names = facts.namespaces
        note = ""
        if len(names) > MOST_NAMESPACES:
            names = tuple(_likely(viewer, namespace))
            note = "There are too many namespaces to ask what you may see of each: name yours."
        rights = [Right("list", "pods", name) for name in names]
        answers = await asyncio.gather(*(self._may(viewer, each) for each in rights), return_exceptions=True)
        if failed := [each for each in answers if isinstance(each, BaseException)]:
            raise failed[0]
        seen = frozenset(each.namespace for each, answer in zip(rights, answers, strict=True) if answer is True)
        if not seen and not note:
            note = "You may list the pods of no namespace that has any here."
        return Scope(seen, nodes=nodes, note=note)

    async def _may(self, viewer: Viewer, right: Right) -> bool:
        known = viewer.rights.get(right)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        async with self._turns:
            is_granted = await self._asked(viewer.person, right)
        viewer.remember(right, is_granted=is_granted, until=time.monotonic() + LASTS_S)
        return is_granted

    async def _asked(self, person: Person, right: Right) -> bool:
        attributes = {"verb": right.verb, "resource": right.resource, "namespace": right.namespace}
        spec = {
            "resourceAttributes": {key: text for key, text in attributes.items() if text},
            "user": person.username,
            "uid": person.uid,
            "groups": person.groups,
            "extra": person.extra,
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return (await self._server.create(_ACCESS, body, _AccessReview)).status.allowed


def _likely(viewer: Viewer, namespace: str) -> Iterable[str]:
    """The requested namespace, a service account's own, and those that were granted before."""
    name = viewer.person.username
    own = name.removeprefix(_ACCOUNT).partition(":")[0] if name.startswith(_ACCOUNT) else ""
    granted = [each.namespace for each, (is_granted, _) in viewer.rights.items() if is_granted and each.namespace]
    return [each for each in dict.fromkeys((namespace, own, *granted)) if each][:MOST_NAMESPACES]


def expiry_of(token: str) -> float | None:
    """When a token expires by its own claim, in seconds since 1970: only for one that the API server has accepted."""
    _, _, rest = token.partition(".")
    claims, _, signature = rest.partition(".")
    if not signature:
        return None
    try:
        return msgspec.json.decode(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)), type=_Claims).exp
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        return None
