"""Pushes the images of a layout to a registry by its HTTP API. Blobs that it already has are not sent again.

It has no login: if a registry requires one, the message names a tool that has, and such tools read the layout.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from ssl import SSLCertVerificationError, SSLError
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin, urlsplit
from urllib.request import Request, urlopen

from partage_bundle import image
from partage_bundle.errors import PushRefused
from partage_bundle.process import say

_ANSWERS_WITHIN_S: Final = 60.0
_BINARY: Final = "application/octet-stream"


@dataclass(frozen=True)
class Repository:
    """The target of a push: `registry.example/team/partage-node`, by HTTPS unless told otherwise."""

    host: str
    path: str
    scheme: str = "https"

    @classmethod
    def of(cls, reference: str, *, is_plain: bool = False) -> Repository:
        host, slash, path = reference.partition("/")
        if not slash or not path or ":" in path or "@" in path:
            raise PushRefused(
                f"{reference!r} is no repository: expected REGISTRY/PATH, as registry.example/partage-node"
            )
        return cls(host, path, "http" if is_plain else "https")

    def url(self, rest: str) -> str:
        return f"{self.scheme}://{self.host}/v2/{self.path}/{rest}"


def push(layout: Path, to: Repository) -> str:
    """Pushes all that the layout's index refers to, then the index under the tag; returns its digest, for pods."""
    try:
        top = image.index_of(layout)
    except FileNotFoundError as error:
        raise PushRefused(f"{layout} has no images; tools/bundle all writes them") from error
    tag = top["annotations"][image.TAG]
    for manifest in _read(layout, top)["manifests"]:
        content = _read(layout, manifest)
        for blob in (content["config"], *content["layers"]):
            _push_blob(layout, to, blob["digest"])
        _push_manifest(layout, to, manifest, manifest["digest"])
    _push_manifest(layout, to, top, tag)
    digest: str = top["digest"]
    say(f"pushed {to.host}/{to.path}:{tag}")
    return digest


def _read(layout: Path, described: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(image.path_of(layout, described["digest"]).read_bytes())
    return document


def _push_manifest(layout: Path, to: Repository, described: dict[str, Any], reference: str) -> None:
    with image.path_of(layout, described["digest"]).open("rb") as file:
        _ask("PUT", to.url(f"manifests/{reference}"), to, _Body(file, described["mediaType"], described["size"]))


def _push_blob(layout: Path, to: Repository, digest: str) -> None:
    status, _ = _ask("HEAD", to.url(f"blobs/{digest}"), to)
    if status == HTTPStatus.OK:
        return
    _, place = _ask("POST", to.url("blobs/uploads/"), to)
    joined = urljoin(to.url(""), place)
    if urlsplit(joined).scheme not in {"http", "https"}:
        raise PushRefused(f"{to.host} takes uploads at {joined}, which is no address")
    path = image.path_of(layout, digest)
    with path.open("rb") as file:
        mark = "&" if urlsplit(joined).query else "?"
        _ask("PUT", f"{joined}{mark}digest={digest}", to, _Body(file, _BINARY, path.stat().st_size))


@dataclass(frozen=True)
class _Body:
    content: IO[bytes]
    kind: str
    size: int

    @property
    def headers(self) -> dict[str, str]:
        return {"Content-Type": self.kind, "Content-Length": str(self.size)}


def _ask(method: str, url: str, to: Repository, body: _Body | None = None) -> tuple[int, str]:
    """The status and Location of the answer. Raises `PushRefused`, except for a blob that does not exist yet."""
    headers = body.headers if body else {"Content-Length": "0"}
    content = body.content if body else None
    request = Request(url, data=content, headers=headers, method=method)  # noqa: S310  a registry's, by its scheme
    try:
        with urlopen(request, timeout=_ANSWERS_WITHIN_S) as answer:  # noqa: S310
            return answer.status, answer.headers.get("Location", "")
    except HTTPError as error:
        with error:
            if method == "HEAD" and error.code == HTTPStatus.NOT_FOUND:
                return error.code, ""
            raise PushRefused(_refusal(method, to, error)) from error
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        speaks_plainly = isinstance(reason, SSLError) and not isinstance(reason, SSLCertVerificationError)
        hint = "; for a registry without TLS say --plain-http" if speaks_plainly else ""
        raise PushRefused(f"the registry at {to.host} does not answer {method} of {to.path}: {reason}{hint}") from error


def _refusal(method: str, to: Repository, error: HTTPError) -> str:
    if error.code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return (
            f"the registry at {to.host} wants a login, which this command does not have; with one: "
            f"skopeo copy --all oci:LAYOUT:TAG docker://{to.host}/{to.path}:TAG"
        )
    said = " ".join(error.read(400).decode(errors="replace").split())
    return f"the registry at {to.host} answered {method} of {to.path} with {error.code}: {said}"
