"""What a tree says about itself, word for word: programs of other parts read it."""

from __future__ import annotations

import json

from partage_bundle import papers
from partage_bundle.locks import Package

DIGEST = "ab" * 32


def test_the_manifest_has_a_line_for_each_file_in_the_order_of_paths() -> None:
    entries = [papers.Entry("lib/a name", 0o644, DIGEST), papers.Entry("bin/partage", 0o755, DIGEST)]
    assert papers.manifest(entries) == f"0755 {DIGEST} bin/partage\n0644 {DIGEST} lib/a name\n"


def test_the_list_of_parts_names_packages_and_wheels_as_auditors_look_them_up() -> None:
    package = Package("libstdc++6", "1:12.2.0+b1", DIGEST, "pool/main/libstdc++6.deb")
    text = papers.parts("partage-node", "1", "amd64", [package], [papers.Wheel("nvidia_ml_py", "13.1", "BSD-3-Clause")])
    document = json.loads(text)
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"] == {"type": "application", "name": "partage-node", "version": "1"}
    assert [component["purl"] for component in document["components"]] == [
        "pkg:deb/debian/libstdc%2B%2B6@1%3A12.2.0%2Bb1?arch=amd64&distro=debian-12",
        "pkg:pypi/nvidia-ml-py@13.1",
    ]
    assert document["components"][0]["hashes"] == [{"alg": "SHA-256", "content": DIGEST}]
    assert document["components"][1]["licenses"] == [{"license": {"name": "BSD-3-Clause"}}]


def test_the_order_in_which_parts_are_found_changes_nothing() -> None:
    wheels = [papers.Wheel(name, "1", "") for name in ("aiohttp", "click")]
    packages = [Package(name, "1", DIGEST, "pool/x.deb") for name in ("libc6", "zlib1g")]
    there = papers.parts("partage-node", "1", "amd64", packages, wheels)
    assert papers.parts("partage-node", "1", "amd64", packages[::-1], wheels[::-1]) == there
