"""For any sequence of events, the predicates exclude the same nodes as a slow model that recounts everything."""

from __future__ import annotations

from collections import Counter

import pytest

from partage_plugins.api import PodUid, Slot
from partage_scheduler.objects import ApiPod, ApiVolume
from partage_scheduler.predicates import Predicates, needs
from support.extent import drawn
from support.objects import claim, csi_node, namespace
from unit.scheduler import plain_rules
from unit.scheduler.clusters_made import CLAIMS, PODS, SLOTS, SPACES, TEAMS, Chance

STEPS = 60


class Both:
    """The predicates and the model, with the same input."""

    def __init__(self, seed: int) -> None:
        self.chance = Chance(seed)
        self.predicates = Predicates()
        self.model = plain_rules.Cluster()
        self.reasons: Counter[str] = Counter()
        for space in SPACES:
            for name in CLAIMS:
                mode = "ReadWriteOncePod" if name == "c3" else "ReadWriteOnce"
                made = claim(name, name, namespace=space, mode=mode)
                self.predicates.put_claim(made)
                self.model.claims[space, name] = made
        for name in CLAIMS:
            self.put_volume(self.chance.volume(name))
        for slot in range(SLOTS - 1):
            self.put_node(slot)

    def step(self) -> None:
        act = self.chance.one(
            (*[self.put_pod] * 8, *[self.remove_pod] * 3, *[self.change_node] * 3, self.remove_node, self.change_rest)
        )
        act()

    def put_node(self, slot: int) -> None:
        new = self.chance.node(slot)
        self.predicates.put_node(Slot(slot), new)
        self.model.nodes[slot] = new

    def change_node(self) -> None:
        self.put_node(self.chance.one(range(SLOTS)))

    def remove_node(self) -> None:
        slot = self.chance.one(range(SLOTS))
        self.predicates.remove_node(Slot(slot))
        self.model.nodes.pop(slot, None)
        self.model.pods = {uid: held for uid, held in self.model.pods.items() if held[0] != slot}

    def put_pod(self) -> None:
        if not self.model.nodes:
            return
        new = self.chance.pod(f"p{self.chance.one(range(PODS))}")
        slot = self.chance.one(sorted(self.model.nodes))
        self.predicates.put_pod(Slot(slot), new)
        self.model.pods[new.uid] = slot, new

    def remove_pod(self) -> None:
        uid = PodUid(f"uid-p{self.chance.one(range(PODS))}")
        self.predicates.remove_pod(uid)
        self.model.pods.pop(uid, None)

    def put_volume(self, made: ApiVolume) -> None:
        self.predicates.put_volume(made)
        self.model.volumes[made.name] = made

    def change_rest(self) -> None:
        self.put_volume(self.chance.volume(self.chance.one(CLAIMS)))
        name, most = f"n{self.chance.one(range(3))}", self.chance.one((0, 1, 2))
        self.predicates.put_csi_node(csi_node(name, d=most))
        self.model.most_volumes[name] = {"d": most}
        space, labels = self.chance.one(SPACES), self.chance.among(team=TEAMS)
        self.predicates.put_namespace(namespace(space, **labels))
        self.model.namespaces[space] = labels

    def ask(self) -> None:
        asking = self.chance.pod("asking")
        expected = plain_rules.barred(self.model, asking)
        assert self.found(asking) == expected, asking
        assert needs(asking).cpu_milli == plain_rules.needed(asking)["cpu"]
        self.reasons.update(expected.keys())

    def found(self, asking: ApiPod) -> dict[str, set[int]]:
        end = max(self.model.nodes, default=-1) + 1
        found: dict[str, set[int]] = {}
        for each in self.predicates.barred(asking, end):
            slots = {slot for slot in each.flags(end).nonzero()[0].tolist() if slot in self.model.nodes}
            assert str(each.reason) not in found, "a reason must be told once"
            if slots:
                found[str(each.reason)] = slots
        return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", drawn("unit/scheduler: clusters that change", range(12), 4))
def test_both_agree_after_every_step(seed: int) -> None:
    both = Both(seed)
    for _ in range(STEPS):
        both.step()
        both.ask()


@pytest.mark.slow
def test_both_agree_and_every_rule_has_its_say() -> None:
    reasons: Counter[str] = Counter()
    for seed in range(100, 112):
        both = Both(seed)
        for _ in range(STEPS):
            both.step()
            both.ask()
            both.ask()
        reasons += both.reasons
    assert len(reasons) >= 18, reasons


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_came_and_went_leaves_nothing_behind(seed: int) -> None:
    both = Both(seed)
    for _ in range(STEPS):
        both.step()
        both.ask()
    for uid in list(both.model.pods):
        both.predicates.remove_pod(PodUid(uid))
    both.model.pods.clear()
    both.ask()
    assert in_use(both.predicates) == in_use(Predicates())


def in_use(told: Predicates) -> dict[str, int]:
    """The number of entries kept for pods, by component."""
    keepers = [
        (name, getattr(told, name)) for name in ("_kinds", "_ports", "_inter_pod_affinity", "_preferring", "_reach")
    ]
    pods = {name: len(getattr(told, name)) for name in ("_present",)}
    kept = {
        "_kinds": "_kinds",
        "_ports": "_used",
        "_inter_pod_affinity": "_apart",
        "_preferring": "_held",
        "_reach": "_used",
    }
    return pods | {name: len(getattr(keeper, kept[name])) for name, keeper in keepers}
