"""A release's folder is complete, describes its contents correctly, and has the same bits whoever builds it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

from partage_bundle import cache
from real.bundle.conftest import HERE
from rig.programs import ensure
from support.release_folder import ReleaseFolder, release_folder
from support.releases import bundle


def test_every_file_has_its_sum_and_is_as_it_says(release: ReleaseFolder) -> None:
    lines = (release.path / "SHA256SUMS").read_text().splitlines()
    there = {str(path.relative_to(release.path)) for path in release.path.rglob("*") if path.is_file()}
    assert {line.split("  ", 1)[1] for line in lines} == there - {"SHA256SUMS"}
    subprocess.run(("sha256sum", "--check", "--quiet", "SHA256SUMS"), cwd=release.path, check=True)


def test_a_second_build_for_another_user_is_the_same_to_the_bit(
    release: ReleaseFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second build shares downloads and compiled objects, but no assembled results."""
    first, second = cache.root(), tmp_path / "cache"
    second.mkdir()
    for name in ("debs", "uv", "zig", "objects", "wheels"):
        (second / name).symlink_to(first / name)
    monkeypatch.setenv("PARTAGE_BUNDLE_CACHE", str(second))
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    before = os.umask(0o077)
    try:
        again = release_folder(tmp_path / "dist")
    finally:
        os.umask(before)
    sums = [(each.path / "SHA256SUMS").read_text().splitlines() for each in (release, again)]
    assert sums[0] == sums[1]


def test_the_bill_of_materials_has_every_wheel_and_image_with_what_is_in_it(release: ReleaseFolder) -> None:
    components = json.loads((release.path / "partage.cdx.json").read_text())["components"]
    digests = {each["hashes"][0]["content"] for each in components}
    for path in (*release.path.glob("wheels/*"), *release.path.glob("sdists/*"), *release.path.glob("krew/*.gz")):
        assert sha256(path.read_bytes()).hexdigest() in digests, path.name
    (node,) = (each for each in components if each["name"] == "partage-node")
    index = json.loads((release.path / "images/partage-node/index.json").read_text())["manifests"][0]
    assert index["digest"] == f"sha256:{node['hashes'][0]['content']}"
    (tree,) = node["components"]
    within = json.loads(of_layer(release, "partage-node", f"opt/partage/{release.version}/sbom.json"))["components"]
    assert tree["components"][: len(within)] == within
    assert [each["name"] for each in tree["components"][len(within) :]] == ["ziglang"]


def of_layer(release: ReleaseFolder, image: str, name: str) -> bytes:
    """A file of an image, from the layer that has it."""
    for blob in (release.path / "images" / image / "blobs/sha256").iterdir():
        if blob.read_bytes()[:2] == b"\x1f\x8b":
            with tarfile.open(blob) as layer:
                if name in layer.getnames():
                    found = layer.extractfile(name)
                    assert found is not None
                    return found.read()
    raise AssertionError(f"{image} has no {name}")


def test_the_provenance_names_every_file_and_the_commit(release: ReleaseFolder) -> None:
    said = json.loads((release.path / "partage.intoto.json").read_text())
    assert said["predicateType"] == "https://slsa.dev/provenance/v1"
    named = {each["name"]: each["digest"]["sha256"] for each in said["subject"]}
    summed = dict(line.split("  ", 1)[::-1] for line in (release.path / "SHA256SUMS").read_text().splitlines())
    assert {name: digest for name, digest in named.items() if name in summed} == {
        name: digest for name, digest in summed.items() if name != "partage.intoto.json"
    }
    commit = said["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["gitCommit"]
    assert commit.startswith(release.version.split("-g")[1].removesuffix("-dirty"))


def test_the_library_and_the_runtime_of_the_wheel_are_built(release: ReleaseFolder, tmp_path: Path) -> None:
    (wheel,) = release.path.glob("wheels/partage-*.whl")
    subprocess.run(("python3", "-m", "zipfile", "-e", str(wheel), str(tmp_path)), check=True)
    places = (("partage_isolation/library/objects", "objects"), ("partage_oci/programs", "program"))
    for inside, command in places:
        (built,) = map(Path, bundle_lines(command))
        for path in built.iterdir():
            assert (tmp_path / inside / HERE / path.name).read_bytes() == path.read_bytes()


def test_the_sources_make_the_wheel_again_but_for_what_is_compiled_and_the_manual(
    release: ReleaseFolder, tmp_path: Path
) -> None:
    (sources,) = release.path.glob("sdists/partage-*.tar.gz")
    words = ("wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(sources))
    subprocess.run((sys.executable, "-m", "pip", *words), check=True)
    (wheel,), (again,) = release.path.glob("wheels/partage-*.whl"), tmp_path.glob("*.whl")
    manual = f"{'-'.join(wheel.name.split('-')[:2])}.data/data/share/man/man1/"
    built = ("partage_isolation/library/objects/", "partage_oci/programs/", manual)
    names = [{name for name in ZipFile(each).namelist() if not name.startswith(built)} for each in (wheel, again)]
    assert names[0] == names[1]
    assert '.TH "PARTAGE-TOP"' in ZipFile(wheel).read(f"{manual}partage-top.1").decode()


def bundle_lines(command: str) -> list[str]:
    return bundle(Path(__file__).parents[3], command, "--arch", HERE).splitlines()


def test_kubectl_finds_the_plugin_where_krew_unpacks_it(release: ReleaseFolder, tmp_path: Path) -> None:
    """As krew does it: unpacked anywhere, with a link on the PATH. The system's Python is not used."""
    (packed,) = release.path.glob("krew/*.tar.gz")
    assert sha256(packed.read_bytes()).hexdigest() in (release.path / "krew/partage.yaml").read_text()
    store, links = tmp_path / "store/partage/v1", tmp_path / "bin"
    store.mkdir(parents=True)
    links.mkdir()
    subprocess.run(("tar", "-xf", packed, "-C", store), check=True)
    (links / "kubectl-partage").symlink_to("../store/partage/v1/kubectl-partage")
    kubectl = ensure("kubectl")["kubectl"]
    env = {"PATH": f"{links}:/usr/bin:/bin", "HOME": str(tmp_path)}

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run((kubectl, "partage", *words), env=env, capture_output=True, text=True, check=False)

    assert said("--version").stdout == "partage 0.1.0\n"
    assert said("explain", "--help").stdout.startswith("Usage: kubectl partage explain ")
    nowhere = said("nodes", "--kubeconfig", "/nowhere")
    assert (nowhere.returncode, nowhere.stderr) == (
        1,
        "partage: kubeconfig /nowhere: there is no such file; name one that exists [PTG301]\n",
    )
