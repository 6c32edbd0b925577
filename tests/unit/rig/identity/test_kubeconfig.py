"""A kubeconfig is whole wherever it is mounted, and nobody else's to read."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from rig.identity.identities import Identities
from rig.identity.people import ALICE
from rig.identity.proofs import Bearer, Certified, Identity

SERVER = "https://198.18.0.1:6443"


@pytest.fixture
def identities(tmp_path: Path) -> Identities:
    return Identities(tmp_path)


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_it_names_the_server_and_embeds_whom_to_trust(identities: Identities) -> None:
    cluster = read(identities.kubeconfig(identities.admin, SERVER))["clusters"][0]["cluster"]
    assert cluster["server"] == SERVER
    assert base64.b64decode(cluster["certificate-authority-data"]) == identities.ca.read_bytes()


def test_it_embeds_a_certificate_and_its_key(identities: Identities) -> None:
    alice = identities.client(ALICE)
    assert isinstance(alice.proof, Certified)
    user = read(identities.kubeconfig(alice, SERVER))["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]) == alice.proof.certificate.read_bytes()
    assert base64.b64decode(user["client-key-data"]) == alice.proof.key.read_bytes()


def test_it_holds_a_token_where_there_is_no_certificate(identities: Identities) -> None:
    account = Identity("system:serviceaccount:partage-system:partage-scheduler", Bearer("secret"))
    assert read(identities.kubeconfig(account, SERVER))["users"][0]["user"] == {"token": "secret"}


def test_its_context_joins_the_two(identities: Identities) -> None:
    config = read(identities.kubeconfig(identities.client(ALICE), SERVER))
    (context,) = config["contexts"]
    assert config["current-context"] == context["name"]
    assert context["context"]["cluster"] == config["clusters"][0]["name"]
    assert context["context"]["user"] == config["users"][0]["name"] == "alice"


def test_each_identity_has_a_file_of_its_own_that_nobody_else_may_read(identities: Identities) -> None:
    files = [identities.kubeconfig(each, SERVER) for each in (identities.node("n1"), identities.node("n2"))]
    assert len(set(files)) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_token_is_never_shown() -> None:
    assert "secret" not in repr(Identity("someone", Bearer("secret")))
