"""The archive for air-gapped clusters stores each byte once and can be verified."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from partage_bundle import archive
from partage_bundle.layer import Layer

VERSION = "0.1.0-g0123456789ab"
DIGEST = f"sha256:{'d' * 64}"

VALUES = "appVersion: kept\nimage:\n  node: {image}\nmutation:\n  schedulerName: partage-node\n"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive of a chart and one image, whose layer is the archive of its tree."""
    layout, chart = tmp_path / "layout", tmp_path / "chart"
    (layout / "blobs").mkdir(parents=True)
    (layout / "index.json").write_text(f'{{"manifests": [{{"digest": "{DIGEST}"}}]}}')
    (layout / "blobs/layer").write_bytes(b"a tree" * 1000)
    chart.mkdir()
    (chart / "Chart.yaml").write_text("name: partage\nversion: 0.1.0\nappVersion: 0.1.0\n")
    (chart / "values.yaml").write_text(VALUES.format(image="partage-node"))
    monkeypatch.setattr(archive, "CHART", chart)
    tree = tmp_path / "tree.tar.gz"
    tree.write_bytes((layout / "blobs/layer").read_bytes())
    target = tmp_path / "archive.tar"
    archive.write(target, VERSION, {"partage-node": layout}, {"partage-node.tar.gz": Layer(tree, "sha256:0")})
    return target


@pytest.fixture
def unpacked(written: Path, tmp_path: Path) -> Path:
    subprocess.run(["tar", "-xf", written], cwd=tmp_path, check=True)
    return tmp_path / f"partage-{VERSION}"


def test_all_of_it_is_as_its_sums_say(unpacked: Path) -> None:
    sums = (unpacked / "SHA256SUMS").read_text().splitlines()
    there = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    assert {line.split("  ")[1] for line in sums} == there - {"SHA256SUMS"}
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=unpacked, check=True)


def test_a_tree_is_in_it_once_and_has_two_names(unpacked: Path) -> None:
    tree, layer = unpacked / "trees/partage-node.tar.gz", unpacked / "images/partage-node/blobs/layer"
    assert tree.samefile(layer)


def test_the_chart_names_the_images_that_lie_beside_it_by_their_digests(unpacked: Path) -> None:
    assert (unpacked / "chart/Chart.yaml").read_text() == f"name: partage\nversion: 0.1.0\nappVersion: {VERSION}\n"
    values = VALUES.format(image=f"partage-node:{VERSION}@{DIGEST}")
    assert (unpacked / "chart/values.yaml").read_text() == values


def test_owners_and_times_of_the_builder_are_not_in_it(written: Path) -> None:
    with tarfile.open(written) as tar:
        assert {(member.uid, member.gid, member.mtime, member.uname) for member in tar} == {(0, 0, 0, "")}
