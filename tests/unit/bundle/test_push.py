"""Messages for a registry that rejects an image. Successful pushes are tested with a real registry on the rig."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from partage_bundle.errors import PushRefused
from partage_bundle.registry import Repository, push


class Refusing(BaseHTTPRequestHandler):
    """Rejects every request with the status that its server has."""

    def _refuse(self) -> None:
        assert isinstance(self.server, Registry)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_POST = do_PUT = _refuse  # noqa: N815  the names that http.server calls

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's
        pass


class Registry(ThreadingHTTPServer):
    status = 500


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """A layout of one image with one blob, which the tests never read."""
    blobs = tmp_path / "blobs/sha256"
    blobs.mkdir(parents=True)
    blob = {"digest": "sha256:config", "mediaType": "a", "size": 2}
    (blobs / "manifest").write_text(json.dumps({"config": blob, "layers": []}))
    (blobs / "index").write_text(
        json.dumps({"manifests": [{"digest": "sha256:manifest", "mediaType": "b", "size": 2}]})
    )
    top = {"digest": "sha256:index", "annotations": {"org.opencontainers.image.ref.name": "1"}}
    (tmp_path / "index.json").write_text(json.dumps({"manifests": [top]}))
    return tmp_path


def to(server: Registry) -> Repository:
    return Repository.of(f"127.0.0.1:{server.server_port}/team/partage-node", is_plain=True)


@pytest.mark.parametrize("status", [401, 403])
def test_a_registry_that_wants_a_login_is_named_with_the_tool_that_has_one(
    registry: Registry, layout: Path, status: int
) -> None:
    registry.status = status
    with pytest.raises(PushRefused, match=r"wants a login.*skopeo copy --all oci:LAYOUT:TAG docker://127\.0\.0\.1"):
        push(layout, to(registry))


def test_another_refusal_is_told_with_its_status(registry: Registry, layout: Path) -> None:
    with pytest.raises(PushRefused, match=r"answered HEAD of team/partage-node with 500"):
        push(layout, to(registry))


def test_a_registry_that_is_not_there_is_one_line(layout: Path) -> None:
    gone = Repository.of("127.0.0.1:1/partage-node", is_plain=True)
    with pytest.raises(PushRefused, match=r"^the registry at 127\.0\.0\.1:1 does not answer HEAD of partage-node: .*$"):
        push(layout, gone)


def test_a_registry_without_tls_is_told_apart(registry: Registry, layout: Path) -> None:
    with pytest.raises(PushRefused, match=r"; for a registry without TLS say --plain-http$"):
        push(layout, Repository.of(f"127.0.0.1:{registry.server_port}/team/partage-node"))


def test_images_that_were_not_made_are_missed_by_name(tmp_path: Path) -> None:
    with pytest.raises(PushRefused, match=r"has no images; tools/bundle all writes them"):
        push(tmp_path, Repository.of("registry.example/partage-node"))


@pytest.mark.parametrize("reference", ["partage-node", "registry.example/", "registry.example/partage-node:1"])
def test_a_name_that_is_no_repository_is_refused(reference: str) -> None:
    with pytest.raises(PushRefused, match="is no repository"):
        Repository.of(reference)
