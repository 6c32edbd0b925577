"""What our daemons may do in a rig is what we deliver."""

from __future__ import annotations

from rig.identity.delivered import delivered
from rig.identity.permissions import SCHEDULER_FILES, manifests


def test_the_advertisers_are_the_delivered_ones_and_its_policies_come_first() -> None:
    kinds = [manifest["kind"] for manifest in manifests()]
    assert kinds.index("ValidatingAdmissionPolicyBinding") < kinds.index("ServiceAccount")
    for file in ("admission", "rbac"):
        assert all(manifest in manifests() for manifest in delivered(f"advertiser/{file}.yaml"))


def test_the_schedulers_are_the_delivered_ones() -> None:
    assert all(manifest in manifests() for file in SCHEDULER_FILES for manifest in delivered(file))
