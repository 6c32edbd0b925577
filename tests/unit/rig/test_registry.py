"""What is pushed to the rig's registry is what is pulled from it, under the name that containerd asks for."""

from __future__ import annotations

import hashlib
import json
import socket
import tomllib
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from rig.building import ensure
from rig.errors import ComponentFailed, RigError
from rig.images import File, Image
from rig.images.image import MANIFEST, Blob
from rig.registry import Registry, place

IMAGE = Image.of([File("/tool", b"tool")])


@pytest.mark.parametrize(
    ("name", "repository", "tag"),
    [
        ("registry.k8s.io/pause:3.10.2", "pause", "3.10.2"),
        ("registry.k8s.io/e2e-test-images/busybox:1.29-2", "e2e-test-images/busybox", "1.29-2"),
        ("gcr.io/k8s-staging-cri-tools/test-image-latest", "k8s-staging-cri-tools/test-image-latest", "latest"),
        ("localhost/own:1", "own", "1"),
        ("host:5000/a/b", "a/b", "latest"),
        ("busybox", "library/busybox", "latest"),
        ("busybox:1", "library/busybox", "1"),
        ("docker.io/busybox:1", "library/busybox", "1"),
        ("team/tool:2", "team/tool", "2"),
    ],
)
def test_a_name_is_placed_where_containerd_looks_for_it(name: str, repository: str, tag: str) -> None:
    assert place(name) == (repository, tag)


def test_containerd_is_told_to_ask_this_registry_and_no_other(tmp_path: Path) -> None:
    Registry("198.18.0.1").serve(tmp_path)
    said = tomllib.loads((tmp_path / "_default/hosts.toml").read_text())
    assert said == {"server": "http://198.18.0.1:5000", "capabilities": ["pull", "resolve"]}


def test_a_registry_that_is_not_there_is_named_with_its_address() -> None:
    registry = Registry("127.0.0.1", free_port())
    assert f"the registry at {registry.address} did not answer GET /v2/" in str(registry.why_not_ready())
    with pytest.raises(ComponentFailed, match=r"the registry at .* did not answer HEAD .*: .*refused"):
        registry.push(IMAGE, "busybox")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    program = ensure("docker-registry", say=print)["docker-registry"]
    registry = Registry("127.0.0.1", free_port())
    component = registry.component(program, tmp_path)
    component.start()
    try:
        component.wait_ready(within_s=20)
        yield registry
    finally:
        component.kill()


@pytest.mark.slow
@pytest.mark.timeout(60)
class TestReal:
    """With the real docker-registry."""

    def test_what_was_pushed_is_served_byte_by_byte(self, registry: Registry) -> None:
        registry.push(IMAGE, "registry.k8s.io/team/tool:2")
        assert served(registry, "/v2/team/tool/manifests/2") == IMAGE.manifest.content
        for blob in IMAGE.blobs:
            assert served(registry, f"/v2/team/tool/blobs/{blob.digest}") == blob.content

    def test_a_pushed_image_is_served_by_its_digest_too(self, registry: Registry) -> None:
        registry.push(IMAGE, "tool:1")
        assert served(registry, f"/v2/library/tool/manifests/{IMAGE.manifest.digest}") == IMAGE.manifest.content

    def test_pushing_again_sends_no_blob(self, registry: Registry, tmp_path: Path) -> None:
        registry.push(IMAGE, "tool:1")
        blobs = list((tmp_path / "registry/data").rglob("blobs/**/data"))
        before = {path: path.stat().st_mtime_ns for path in blobs}
        registry.push(IMAGE, "tool:1")
        digest = IMAGE.layers[0].digest.removeprefix("sha256:")
        assert [path for path in before if digest in str(path)]
        assert all(path.stat().st_mtime_ns == then for path, then in before.items() if digest in str(path))

    def test_a_tag_can_be_moved_and_two_tags_can_be_one_image(self, registry: Registry) -> None:
        newer = IMAGE.labelled(name="newer")
        registry.push(IMAGE, "tool:1")
        registry.push(newer, "tool:1")
        registry.push(newer, "tool:2")
        tags = json.loads(served(registry, "/v2/library/tool/tags/list"))["tags"]
        assert sorted(tags) == ["1", "2"]
        for tag in tags:
            assert served(registry, f"/v2/library/tool/manifests/{tag}") == newer.manifest.content

    def test_what_the_registry_refuses_is_an_error_that_says_why(self, registry: Registry) -> None:
        torn = Blob("application/vnd.oci.image.layer.v1.tar", b"content")
        torn.__dict__["digest"] = "sha256:" + hashlib.sha256(b"other content").hexdigest()
        with pytest.raises(
            RigError, match=r"answered PUT /v2/library/tool/blobs/uploads/.* with 400: .*DIGEST_INVALID"
        ):
            registry.push(Image(layers=(torn,)), "tool:1")

    def test_it_listens_on_its_own_address_alone(self, registry: Registry) -> None:
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", registry.port), timeout=5):
            pass


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def served(registry: Registry, path: str) -> bytes:
    connection = HTTPConnection(registry.host, registry.port, timeout=10)
    try:
        connection.request("GET", path, headers={"Accept": MANIFEST})
        answer: HTTPResponse = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    assert answer.status == 200, content
    return content
