"""The exact text of a tree's metadata: programs of other components parse it."""

from __future__ import annotations

import json

from partage_bundle import bill_of_materials
from partage_bundle.locks import Package

DIGEST = "ab" * 32


def test_the_manifest_has_a_line_for_each_file_in_the_order_of_paths() -> None:
    entries = [
        bill_of_materials.ManifestEntry("lib/a name", 0o644, DIGEST),
        bill_of_materials.ManifestEntry("bin/partage", 0o755, DIGEST),
    ]
    assert bill_of_materials.manifest(entries) == f"0755 {DIGEST} bin/partage\n0644 {DIGEST} lib/a name\n"


def test_the_list_of_parts_names_packages_and_wheels_as_auditors_look_them_up() -> None:
    package = Package("libstdc++6", "1:12.2.0+b1", DIGEST, "pool/main/libstdc++6.deb")
    text = bill_of_materials.parts(
        "partage-node", "1", "amd64", [package], [bill_of_materials.Wheel("nvidia_ml_py", "13.1", "BSD-3-Clause")]
    )
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
    wheels = [bill_of_materials.Wheel(name, "1", "") for name in ("aiohttp", "click")]
    packages = [Package(name, "1", DIGEST, "pool/x.deb") for name in ("libc6", "zlib1g")]
    there = bill_of_materials.parts("partage-node", "1", "amd64", packages, wheels)
    assert bill_of_materials.parts("partage-node", "1", "amd64", packages[::-1], wheels[::-1]) == there
