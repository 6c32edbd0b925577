"""A grant's CDI file: one device with all that limits, so that nothing of it can be left out."""

from __future__ import annotations

from typing import Any

import pytest

from partage_cli.machine.grants.document import document_of, hook_of
from partage_plugins.errors import Refused
from partage_plugins.vocabulary.claims import ClaimUid
from partage_plugins.vocabulary.containers import Adjustment, Mount
from partage_plugins.vocabulary.names import CardId

UID = ClaimUid("5f0c")
LIMITS = Adjustment(env={"A": "b"}, mounts=(Mount(container_path="/run/partage/lib", host_path="/lib"),))
HOOK = hook_of("/usr/bin/python3", "partage_isolation.hook", "/", "key", within_s=10)


def published(version: str = "0.5.0", **edits: Any) -> dict[str, Any]:
    """As the node's file of cards is."""
    devices = [
        {"name": f"GPU-{number}", "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{number}"}]}}
        for number in range(2)
    ]
    common = {"deviceNodes": [{"path": "/dev/nvidiactl"}], "mounts": [{"containerPath": "/usr/lib/libcuda.so.1"}]}
    return {"cdiVersion": version, "kind": "partage.dev/gpu", "devices": devices, "containerEdits": common | edits}


def document(*cards: str, of: dict[str, Any] | None = None) -> Any:
    return document_of(UID, LIMITS, tuple(map(CardId, cards)), of or published(), HOOK)


def test_one_device_holds_cards_limits_and_the_hook() -> None:
    made = document("GPU-1")
    (device,) = made["devices"]
    edits = device["containerEdits"]
    assert (made["kind"], made["cdiVersion"], device["name"]) == ("partage.dev/share", "0.5.0", "5f0c")
    assert [each["path"] for each in edits["deviceNodes"]] == ["/dev/nvidiactl", "/dev/nvidia1"]
    assert edits["env"] == ["A=b"]
    assert edits["hooks"] == [HOOK]


def test_what_limits_is_mounted_after_what_it_lies_on() -> None:
    (device,) = document("GPU-0")["devices"]
    mounts = [each["containerPath"] for each in device["containerEdits"]["mounts"]]
    assert mounts == ["/usr/lib/libcuda.so.1", "/run/partage/lib"]


def test_hooks_of_the_cards_stay() -> None:
    theirs = {"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook"}
    (device,) = document("GPU-0", of=published(hooks=[theirs]))["devices"]
    assert device["containerEdits"]["hooks"] == [theirs, HOOK]


@pytest.mark.parametrize(("theirs", "ours"), [("0.3.0", "0.5.0"), ("0.7.0", "0.7.0"), ("0.10.0", "0.10.0")])
def test_its_version_is_that_of_all_that_stands_in_it(theirs: str, ours: str) -> None:
    assert document("GPU-0", of=published(theirs))["cdiVersion"] == ours


def test_a_card_that_has_no_device_is_refused() -> None:
    with pytest.raises(Refused, match="lacks GPU-7"):
        document("GPU-0", "GPU-7")


def test_the_document_of_cards_stays_as_it_is() -> None:
    cards = published()
    document("GPU-0", of=cards)
    assert cards == published()
