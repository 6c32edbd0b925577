"""An image's digests follow from its files and settings alone, and its parts fit together as OCI has them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from rig.images import File, Folder, Image
from rig.images.image import ARCHITECTURE, CONFIG, INDEX, LAYER, MANIFEST, layout

BASE = Image.of([Folder("/bin"), File("/bin/tool", b"tool")])


def config(image: Image) -> Any:
    return json.loads(image.config.content)


def test_equal_images_have_equal_digests() -> None:
    again = Image.of([Folder("/bin"), File("/bin/tool", b"tool")])
    assert (again.manifest.digest, again.config.digest) == (BASE.manifest.digest, BASE.config.digest)


@pytest.mark.parametrize(
    "other",
    [
        BASE.with_files({"/bin/more": b""}),
        BASE.starting("/bin/tool"),
        BASE.as_user("1002"),
        BASE.labelled(name="other"),
        Image.of([Folder("/bin"), File("/bin/tool", b"tool", 0o700)]),
    ],
)
def test_whatever_differs_gives_another_id(other: Image) -> None:
    assert other.config.digest != BASE.config.digest


def test_the_order_in_which_files_are_named_does_not_matter() -> None:
    one = BASE.with_files({"/a": b"1", "/b": b"2"})
    assert one.config.digest == BASE.with_files({"/b": b"2", "/a": b"1"}).config.digest


def test_files_are_added_as_one_layer_above_the_shared_ones(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"from a file")
    image = BASE.with_files({"/bin/given": b"given", "/bin/found": program})
    assert image.layers[:-1] == BASE.layers
    with tarfile.open(fileobj=io.BytesIO(image.layers[-1].content)) as tar:
        contents = {member.name: member_content(tar, member) for member in tar.getmembers()}
        assert {member.mode for member in tar.getmembers()} == {0o755}
    assert contents == {"bin/found": b"from a file", "bin/given": b"given"}


def member_content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None
    return file.read()


def test_the_configuration_names_platform_layers_and_settings() -> None:
    image = BASE.starting("/bin/tool", "-v").as_user("1002:5").labelled(name="x")
    said = config(image)
    assert (said["os"], said["architecture"]) == ("linux", ARCHITECTURE)
    assert said["rootfs"] == {"type": "layers", "diff_ids": [layer.digest for layer in image.layers]}
    assert said["config"]["Entrypoint"] == ["/bin/tool", "-v"]
    assert (said["config"]["User"], said["config"]["Labels"]) == ("1002:5", {"name": "x"})
    assert said["config"]["Env"] == ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]


def test_the_manifest_refers_to_every_blob_by_type_size_and_digest() -> None:
    image = BASE.with_files({"/more": b"more"})
    said = json.loads(image.manifest.content)
    described = [*said["layers"], said["config"]]
    assert (said["schemaVersion"], said["mediaType"]) == (2, MANIFEST)
    assert [each["mediaType"] for each in described] == [LAYER, LAYER, CONFIG]
    for each, blob in zip(described, image.blobs, strict=True):
        assert each["size"] == len(blob.content)
        assert each["digest"] == "sha256:" + hashlib.sha256(blob.content).hexdigest()


def test_a_layout_holds_every_named_image_and_each_blob_once() -> None:
    images = {"docker.io/library/one:1": BASE, "docker.io/library/two:2": BASE.labelled(name="two")}
    with tarfile.open(fileobj=io.BytesIO(layout(images))) as tar:
        files = {member.name: member_content(tar, member) for member in tar.getmembers() if member.isfile()}
    assert json.loads(files.pop("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(files.pop("index.json"))
    assert index["mediaType"] == INDEX
    names = {each["annotations"]["io.containerd.image.name"]: each["digest"] for each in index["manifests"]}
    assert names == {name: image.manifest.digest for name, image in images.items()}
    assert len(files) == 5, "two manifests, two configurations, and the layer that they share"
    for name, content in files.items():
        assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"
