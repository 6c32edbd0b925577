"""The oldest supported Kubernetes and containerd are the same in code, chart and documents, and are tested."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from partage_cli.installation.refusals import OLDEST_CONTAINERD, OLDEST_KUBERNETES, shown
from rig.programs.catalogue import RELEASES

ROOT = Path(__file__).resolve().parents[2]
KUBERNETES, CONTAINERD = shown(OLDEST_KUBERNETES), shown(OLDEST_CONTAINERD)


class Chart(msgspec.Struct, frozen=True, rename="camel"):
    kube_version: str


def text_of(path: str) -> str:
    """The file's text, with single spaces between words."""
    return " ".join((ROOT / path).read_text().split())


def tried(component: str) -> list[str]:
    releases = [name.partition("@")[2] for name, each in RELEASES.items() if each.name == component]
    minors = {tuple(map(int, release.split(".")[:2])) for release in releases if release[0].isdecimal()}
    return [shown((major, minor)) for major, minor in sorted(minors)]


def test_the_chart_is_for_no_older_kubernetes() -> None:
    chart = msgspec.yaml.decode((ROOT / "manifests/chart/Chart.yaml").read_text(), type=Chart)
    assert chart.kube_version == f">={KUBERNETES}.0-0"


def test_the_documents_ask_for_no_older_versions() -> None:
    install = text_of("docs/install.md")
    assert f"Kubernetes from {KUBERNETES} (tested: " in install
    assert f"containerd from {CONTAINERD} (tested: {CONTAINERD}, " in install
    assert f"Kubernetes {KUBERNETES} or newer. The images" in text_of("manifests/README.md")


def test_nothing_is_said_to_need_less_than_all_that_is_supported() -> None:
    """A page with a requirement of its own names a later version than the oldest."""
    pages = [path for folder in ("docs", "manifests") for path in (ROOT / folder).rglob("*.md")]
    needs = re.compile(r"(?:needs?|from|on) Kubernetes 1\.(\d+)|Kubernetes from 1\.(\d+)", re.IGNORECASE)
    found = {(path.name, int(minor or other)) for path in pages for minor, other in needs.findall(text_of(str(path)))}
    assert found
    assert {each for each in found if each[1] < OLDEST_KUBERNETES[1]} == set()


def test_the_oldest_is_the_oldest_that_is_tried() -> None:
    assert tried("kubernetes")[0] == KUBERNETES
    assert f"(tested: {', '.join(tried('kubernetes'))})" in text_of("docs/install.md")
    said = re.search(r"containerd from \S+ \(tested: ([^)]*)\)", text_of("docs/install.md"))
    assert said is not None
    debians = re.search(r"in Debian 12 it is (\d+\.\d+)\.", text_of("tests/rig/README.md"))
    assert debians is not None
    assert said[1].split(", ") == [debians[1], *tried("containerd")]
    assert debians[1] == CONTAINERD
