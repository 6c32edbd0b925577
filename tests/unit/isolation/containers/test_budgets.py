"""Containers of a pod with a common budget are added, change and go: what is kept, reported and left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_isolation.errors import NoFolder, SpecRefused
from partage_isolation.names import budget_key
from partage_isolation.store.folders import PARENT
from partage_isolation.store.row_bounds import Sort
from partage_isolation.store.specs import Specs
from partage_isolation.wire.messages import Prepare, SetLimits
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.names import BudgetName, ContainerKey, ContainerName
from support.broker import CARD, pod
from unit.isolation.containers.site import Site

GIB = 1 << 30
A, B = ContainerKey("a" * 32), ContainerKey("b" * 32)


def asked(key: ContainerKey, memory: int = GIB, *, gen: int = 1, share: int = 300) -> Prepare:
    grant = GpuGrant(card=CARD, share_milli=share, limit_milli=700, memory_bytes=memory)
    name, budget = ContainerName(key[0]), BudgetName("pod")
    return Prepare(key=key, pod=pod(), container=name, gen=gen, grants=(grant,), budget=budget)


class Budgets(Site):
    def prepare(self, key: ContainerKey, memory: int = GIB, *, gen: int = 1, share: int = 300) -> None:
        self.containers.prepare(asked(key, memory, gen=gen, share=share))


async def test_they_have_one_account_and_one_seat_and_each_its_folder(tmp_path: Path) -> None:
    with Budgets(tmp_path) as site:
        site.prepare(A)
        site.prepare(B)
        site.prepare(A)
        assert site.ledger.containers[A] is site.ledger.containers[B]
        assert [entry.account.share for entry in site.arbiter.node.entries.values()] == [300]
        assert site.folders == {A, B}


async def test_the_budget_ends_with_its_last_container(tmp_path: Path) -> None:
    with Budgets(tmp_path) as site:
        site.prepare(A)
        site.prepare(B)
        site.containers.forget(A)
        assert (site.folders, set(site.limits), site.budget_files) == ({B}, {"b"}, 1)
        assert site.arbiter.node.entries
        site.containers.forget(B)
        assert (site.folders, site.limits, site.budget_files) == (set(), {}, 0)
        assert not site.arbiter.node.entries
        assert not site.ledger.budgets


@pytest.mark.parametrize("owner", [A, budget_key(pod().uid, BudgetName("pod"))])
async def test_their_rows_count_for_their_namespace_until_they_end(tmp_path: Path, owner: str) -> None:
    with Budgets(tmp_path) as site:
        site.prepare(A)
        site.prepare(B)
        site.bounds.takes(owner, Sort.PIECE, 800)
        assert not site.bounds.has(B, Sort.PIECE, 10_000)
        site.containers.forget(A)
        site.containers.forget(B)
        site.bounds.belongs(B, pod().namespace)
        assert site.bounds.has(B, Sort.PIECE, 10_000)


async def test_what_is_lowered_for_one_is_lowered_for_all_and_also_for_who_comes_later(tmp_path: Path) -> None:
    with Budgets(tmp_path) as site:
        site.prepare(A)
        await site.containers.set_limits(SetLimits(key=A, card=CARD, memory_bytes=100, share_milli=50))
        site.prepare(B)
        assert site.limits == {"a": (100, 50), "b": (100, 50)}
        await site.containers.set_limits(SetLimits(key=B, card=CARD, memory_bytes=None, share_milli=None))
        assert site.limits == {"a": (GIB, 300), "b": (GIB, 300)}


async def test_a_second_container_with_other_limits_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with Budgets(tmp_path) as site:
        site.prepare(A)
        with pytest.raises(SpecRefused, match="budget pod of pod train-0 has other grants with gen 1"):
            site.prepare(B, 2 * GIB)
        assert (site.folders, site.limits) == ({A}, {"a": (GIB, 300)})
        site.prepare(B, 2 * GIB, gen=2, share=400)
        assert site.limits == {"a": (2 * GIB, 400), "b": (2 * GIB, 400)}
        assert [entry.account.share for entry in site.arbiter.node.entries.values()] == [400]
        assert {each.gen for each in site.containers.facts()} == {2}
        site.prepare(A, 3 * GIB, gen=3)
        assert site.limits == {"a": (3 * GIB, 300), "b": (3 * GIB, 300)}


async def test_the_next_broker_serves_them_together(tmp_path: Path) -> None:
    with Budgets(tmp_path) as site:
        site.prepare(A)
        site.prepare(B)
        await site.containers.set_limits(SetLimits(key=B, card=CARD, memory_bytes=100))
    with Budgets(tmp_path) as after:
        assert not after.containers.rebuild()
        assert after.limits == {"a": (100, 300), "b": (100, 300)}
        assert after.ledger.containers[A] is after.ledger.containers[B]
        assert len(after.arbiter.node.entries) == 1


async def test_one_whose_folder_cannot_be_made_leaves_the_other_as_it_is(tmp_path: Path) -> None:
    with Budgets(tmp_path) as site:
        site.prepare(A)
        (site.root / PARENT / B).write_text("in the way")
        with pytest.raises(NoFolder):
            site.prepare(B)
        assert site.limits == {"a": (GIB, 300)}
        assert Specs(site.root).load()[0] == (site.registry.served[A].spec,)


async def test_the_driver_hears_for_all_containers_of_what_may_be_lent_next(tmp_path: Path) -> None:
    with Budgets(tmp_path) as site:
        site.prepare(A)
        site.prepare(B)
        await site.containers.permit(asked(A))
        assert site.permitted == [], "nothing changes"
        await site.containers.permit(asked(A, 2 * GIB, gen=2))
        await site.containers.permit(SetLimits(key=B, card=CARD, memory_bytes=None))
        await site.containers.permit(SetLimits(key=B, card=CARD, share_milli=100))
        assert site.permitted == [({A, B}, 2 * GIB), ({A, B}, GIB)]
