"""The exact text of a release's metadata: programs of others parse it. The folder itself is tested in real/release."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from partage_bundle.errors import BundleError
from partage_bundle.recipe import MACHINES
from partage_bundle.release import Asked, krew, statements, write
from partage_bundle.release.statements import Content, Source

DIGEST = "ab" * 32
WHEEL = Content(
    "library", "nvidia-ml-py", "13.1", DIGEST, purl="pkg:pypi/nvidia-ml-py@13.1", licence="BSD-3-Clause", parts=[]
)
IMAGE = Content("container", "partage-node", "1", DIGEST, parts=[{"type": "library", "name": "libc6"}])


def test_the_bill_of_materials_names_each_thing_with_its_digest_and_what_is_in_it() -> None:
    document = json.loads(statements.bill("1", [WHEEL, IMAGE]))
    assert (document["bomFormat"], document["metadata"]["component"]["version"]) == ("CycloneDX", "1")
    wheel, image = document["components"]
    assert wheel == {
        "type": "library",
        "name": "nvidia-ml-py",
        "version": "13.1",
        "purl": "pkg:pypi/nvidia-ml-py@13.1",
        "hashes": [{"alg": "SHA-256", "content": DIGEST}],
        "licenses": [{"license": {"name": "BSD-3-Clause"}}],
    }
    assert image["components"] == [{"type": "library", "name": "libc6"}]


def test_the_order_in_which_things_are_found_changes_nothing() -> None:
    assert statements.bill("1", [WHEEL, IMAGE]) == statements.bill("1", [IMAGE, WHEEL])


def test_the_provenance_names_all_files_the_commit_and_that_it_was_changed() -> None:
    subjects, locks = {"b": DIGEST, "a": DIGEST}, {"bundle/locks/node.lock": DIGEST}
    said = [
        json.loads(statements.provenance(subjects, Source("c0ffee", is_dirty, locks), {"version": "1"}))
        for is_dirty in (False, True)
    ]
    assert said[0]["_type"] == "https://in-toto.io/Statement/v1"
    assert said[0]["subject"] == [{"name": name, "digest": {"sha256": DIGEST}} for name in ("a", "b")]
    built = [each["predicate"]["buildDefinition"] for each in said]
    assert built[0]["externalParameters"] == {"version": "1"}
    assert built[0]["resolvedDependencies"] == [
        {"name": "partage", "digest": {"gitCommit": "c0ffee"}},
        {"name": "bundle/locks/node.lock", "digest": {"sha256": DIGEST}},
    ]
    assert built[1]["resolvedDependencies"][0]["annotations"] == {"dirty": True}


def test_the_manifest_of_krew_has_an_archive_for_each_machine() -> None:
    archives = {machine: (f"{machine.debian}.tar.gz", DIGEST) for machine in MACHINES.values()}
    manifest = msgspec.yaml.decode(krew.manifest("0.1.0-g1", "https://example.com/releases/", archives))
    assert (manifest["metadata"]["name"], manifest["spec"]["version"]) == ("partage", "v0.1.0-g1")
    assert [each["selector"]["matchLabels"]["arch"] for each in manifest["spec"]["platforms"]] == ["amd64", "arm64"]
    assert {(each["uri"], each["sha256"], each["bin"]) for each in manifest["spec"]["platforms"]} == {
        (f"https://example.com/releases/{arch}.tar.gz", DIGEST, "kubectl-partage") for arch in ("amd64", "arm64")
    }
    assert len(manifest["spec"]["shortDescription"]) <= 50


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (Asked("1", [], at="releases.example"), "'releases.example' is no address for archives of krew"),
        (
            Asked("1", [], registry="https://registry.example/partage"),
            "'https://registry.example/partage' is no registry",
        ),
    ],
)
def test_a_place_that_is_none_is_refused_before_anything_is_built(asked: Asked, what: str, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=re.escape(what)):
        write(tmp_path / "1", asked)
    assert list(tmp_path.iterdir()) == []
