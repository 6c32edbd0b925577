"""The node plugin in its own process: prepares containers, refuses while no broker answers, and keeps no state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import cast

import msgspec
import pytest

from partage_isolation.plugin import AWAY, AWAY_OF_ENGINES, IN_USE_OF_ENGINES, NONSENSE, OF_ENGINES, WITHOUT_BUDGETS
from partage_isolation.wire.messages import Prepare, Prepared, Question, Rejection, Released, Suspend, Suspended
from partage_plugins.api import GPU, BudgetName, GpuGrant, Granted, Kind, NodeName, PodUid
from partage_plugins.errors import Refused
from partage_plugins.host import HostSettings
from partage_plugins.testing.examples import container
from partage_plugins.testing.node_stage import RunningHost
from support.broker import FakeBroker, prepared
from unit.gpu_node.nodes import CARDS, FIRST, part

pytestmark = pytest.mark.slow

PLUGINS = {
    "kit-gpu": "partage_plugins.testing.neighbours:StandInNode",
    "isolation": "partage_isolation.plugin:IsolationNode",
}
MEMORY = CARDS[0].memory_bytes
SLICE = GpuGrant(card=FIRST, share_milli=1000, limit_milli=1000, memory_bytes=MEMORY // 4)
WHOLE = GpuGrant(card=FIRST, share_milli=1000, limit_milli=1000, memory_bytes=MEMORY)


def granted(grant: GpuGrant) -> Granted:
    grants: Mapping[Kind, object] = {GPU.name: msgspec.Raw(msgspec.json.encode((grant,)))}
    return Granted(gen=1, grants=grants, parts={GPU.name: msgspec.Raw(msgspec.json.encode(part()))})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def host(root: Path) -> Iterator[RunningHost]:
    with RunningHost(HostSettings(node=NodeName("n1"), root=str(root), paths=PLUGINS)) as running:
        assert not running.started.faults
        yield running


def test_a_limited_container_gets_what_the_broker_prepared(root: Path, host: RunningHost) -> None:
    asked = container()
    with FakeBroker(root) as broker:
        adjusted = host.adjust(asked, granted(SLICE))
    (question,) = broker.asked
    assert isinstance(question, Prepare)
    assert adjusted.adjustment.mounts == prepared(question).mounts
    assert not adjusted.unenforced
    assert adjusted.owners["mounts /etc/ld.so.preload"] == ("isolation",)


def test_while_no_broker_answers_a_limited_container_is_refused_with_a_stable_sentence(
    root: Path, host: RunningHost
) -> None:
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            host.adjust(container(), granted(SLICE))
        assert str(refused.value) == AWAY
    with FakeBroker(root):
        host.adjust(container(), granted(SLICE))


def test_the_brokers_own_refusal_reaches_the_user(root: Path, host: RunningHost) -> None:
    why = "partage: the library is not installed at /usr/local/lib/partage/0.1.0; reinstall partage on the node"
    with FakeBroker(root, Rejection(why=why)), pytest.raises(Refused) as refused:
        host.adjust(container(), granted(SLICE))
    assert str(refused.value) == why


def test_a_broker_that_speaks_otherwise_is_not_guessed_at(root: Path, host: RunningHost) -> None:
    with FakeBroker(root, b'{"answer":"granted"}\n'), pytest.raises(Refused) as refused:
        host.adjust(container(), granted(SLICE))
    assert str(refused.value) == NONSENSE


def test_a_broker_that_knows_no_budgets_gets_no_container_of_one(root: Path, host: RunningHost) -> None:
    """It would limit each of a budget's containers to the limits of all of them."""
    asked = msgspec.structs.replace(container(), budgets={GPU.name: BudgetName("pod")})
    with FakeBroker(root) as broker:
        with pytest.raises(Refused) as refused:
            host.adjust(asked, granted(SLICE))
        assert str(refused.value) == WITHOUT_BUDGETS
        broker.answering = lambda question: msgspec.structs.replace(
            prepared(cast("Prepare", question)), budget=BudgetName("pod")
        )
        assert host.adjust(asked, granted(SLICE)).adjustment.mounts


def test_what_the_broker_does_not_enforce_stays_a_broken_promise(root: Path, host: RunningHost) -> None:
    share = GpuGrant(card=FIRST, share_milli=250, limit_milli=1000, memory_bytes=MEMORY // 4)
    with FakeBroker(root):
        assert host.adjust(container(), granted(share)).unenforced == {GPU.name: ("share",)}


def suspending(*, is_on: bool) -> Granted:
    return msgspec.structs.replace(granted(SLICE), gen=2, suspended=is_on)


def moving(question: Question, *, is_done: bool) -> Prepared | Suspended:
    if isinstance(question, Suspend):
        return Suspended(is_on=question.is_on, resident_bytes=0, moved_bytes=0, is_done=is_done)
    return prepared(cast("Prepare", question))


def test_a_container_is_suspended_once_the_broker_says_that_its_memory_is_off(root: Path, host: RunningHost) -> None:
    with FakeBroker(root) as broker:
        for is_done in (False, True):
            broker.answering = partial(moving, is_done=is_done)
            enforced = host.adjust(container(), suspending(is_on=True)).adjustment.enforces[GPU.name]
            assert ("suspended" in enforced) is is_done
        assert "suspended" not in host.adjust(container(), suspending(is_on=False)).adjustment.enforces[GPU.name]
        asked = [each.is_on for each in broker.asked if isinstance(each, Suspend)]
        assert asked == [True, True, False]


def test_a_broker_that_is_away_refuses_no_suspension_and_one_that_refuses_is_quoted(
    root: Path, host: RunningHost
) -> None:
    assert host.adjust(container(), suspending(is_on=True)).adjustment.enforces == {}
    with pytest.raises(Refused, match="no broker answers"):
        host.adjust(container(), suspending(is_on=False))
    why = "container main of pod trainer runs on: no host memory"
    answering = lambda each: Rejection(why=why) if isinstance(each, Suspend) else moving(each, is_done=True)  # noqa: E731
    with FakeBroker(root, answering), pytest.raises(Refused, match="no host memory"):
        host.adjust(container(), suspending(is_on=True))


def test_a_container_without_limits_is_never_called_suspended(root: Path, host: RunningHost) -> None:
    with FakeBroker(root):
        whole = msgspec.structs.replace(granted(WHOLE), suspended=True)
        assert host.adjust(container(), whole).adjustment.enforces == {}


@pytest.fixture
def agents(root: Path) -> Iterator[RunningHost]:
    """The plugins as the agent of Docker and Podman runs them."""
    with RunningHost(HostSettings(node=NodeName("n1"), root=str(root), role="oci", paths=PLUGINS)) as running:
        assert not running.started.faults
        yield running


@pytest.mark.parametrize("grant", [SLICE, WHOLE])
def test_a_container_of_an_engine_is_a_claim_that_it_alone_enters(
    root: Path, agents: RunningHost, grant: GpuGrant
) -> None:
    """Also a container with a whole card: only the broker knows when it has ended."""
    id_ = "1a" * 32
    asked = msgspec.structs.replace(container(), pod=msgspec.structs.replace(container().pod, uid=PodUid(id_)))
    with FakeBroker(root) as broker:
        with pytest.raises(Refused) as refused:
            agents.adjust(asked, granted(grant))
        assert str(refused.value) == OF_ENGINES, "an older broker would let in others"
        broker.answering = lambda question: msgspec.structs.replace(
            prepared(cast("Prepare", question)), is_claim=True, by_hook=True, engine_container=id_
        )
        assert agents.adjust(asked, granted(grant)).adjustment.mounts
        question = broker.asked[-1]
        assert isinstance(question, Prepare)
        assert (question.is_claim, question.by_hook, question.ends_with_last) == (True, True, True)
        assert question.engine_container == id_


def test_the_agent_hears_whether_a_container_of_an_engine_has_its_share_still(root: Path, agents: RunningHost) -> None:
    key = container().key
    with FakeBroker(root, Released(is_over=False)) as broker:
        with pytest.raises(Refused) as refused:
            agents.removed(key)
        assert str(refused.value) == IN_USE_OF_ENGINES
        broker.answering = Released(is_over=True)
        agents.removed(key)
    for ask in (lambda: agents.removed(key), lambda: agents.adjust(container(), granted(SLICE))):
        with pytest.raises(Refused) as away:
            ask()
        assert str(away.value) == AWAY_OF_ENGINES
