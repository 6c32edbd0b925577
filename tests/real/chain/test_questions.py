"""Ten questions of cluster operators, each answered by one command, as docs/questions.md says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from partage_base.version import VERSION
from partage_plugins.api.keys import CARDS, GPU_MEMORY, GPU_MILLI
from rig.client.pods import Pod
from rig.client.wait import until
from rig.patience import patience_s
from support.chain_stage import Chain
from support.faults import NODE, not_in_force
from support.isolation_stage import ask
from support.prometheus import Prometheus, prometheus

pytestmark = pytest.mark.extended("asks the whole chain and a Prometheus; each command has tests of its own")
PAGE: Final = (Path(__file__).parents[3] / "docs/questions.md").read_text()
QUESTIONS: Final[Mapping[str, str]] = dict(re.findall(r"^\| (.*?) \| `(.*?)`", PAGE, re.MULTILINE))
NO_MEMORY: Final = "cuMemAlloc_v2 2"
HAS_FIGURES: Final = "sum_over_time(partage_container_compute_share_ratio[10m:60s])"
"""The query that `partage usage` counts by; it samples once a minute."""


class Asked:
    """A cluster with some history: one pod holds memory and idles, one is at its limit, one waits."""

    def __init__(self, chain: Chain, there: Prometheus) -> None:
        self.chain, self.there = chain, there
        card = chain.advertisers["n1"].cards()[0].id
        self.idle, self.full = (self._pod("idle", "600", **{CARDS: card}), self._pod("full", "200", **{CARDS: card}))
        self._pod("free", "100")  # on the same card, but may go elsewhere
        assert ask(self.full, "take 1500") == "took 1500"
        assert ask(self.full, "take 1500") == NO_MEMORY
        self.waiting = chain.pod("waiting", limits={GPU_MILLI: "1000", GPU_MEMORY: "900Gi"})
        self.waiting.wait_why("GPU memory")

    def _pod(self, name: str, milli: str, **annotations: str) -> Pod:
        limits = {GPU_MILLI: milli, GPU_MEMORY: "2Gi"}
        return self.chain.pod(name, limits=limits, annotations=annotations).wait_running()

    def answer(self, question: str) -> str:
        """Output of the page's command, with this cluster's names filled in."""
        names = {
            "NODE": str(self.idle.node),
            "NAMESPACE/POD": f"{self.waiting.namespace}/{self.waiting.name}",
            "NAMESPACE": self.idle.namespace,
            "http://PROMETHEUS:9090": self.there.url,
        }
        where, *words = shlex.split(QUESTIONS[question])
        words = [names.get(word, word) for word in words]
        if where == "partage":
            return self.chain.partage(*words)
        assert (where, words[0]) == ("sudo", "partage")  # on the node
        way_in = self.chain.machine_of(self.idle).way_in
        argv = [*way_in, sys.executable, "-P", "-m", "partage_cli", *words[1:]]
        return subprocess.run(argv, capture_output=True, text=True, timeout=patience_s(), check=True).stdout


@pytest.fixture
def asked(chain: Chain, tmp_path: Path) -> Iterator[Asked]:
    with prometheus(tmp_path / "prometheus", chain.targets()) as there:
        yield Asked(chain, there)


def row(text: str, *words: str) -> str:
    """The only line that contains all of these words."""
    (found,) = (line for line in text.splitlines() if all(word in line for word in words))
    return found


def who_uses_a_card(asked: Asked, text: str) -> None:
    card = asked.chain.grant(asked.idle).card[:12]
    assert "600" in row(text, card, "team-a/idle")
    assert "200" in row(text, card, "team-a/full")


def why_it_waits(asked: Asked, text: str) -> None:
    assert "0/2 nodes are available" in text
    assert "GPU memory" in text


def which_node_is_out(asked: Asked, _: str) -> None:
    """Asked again while the other node's broker is down."""

    def why_not(words: str) -> str | None:
        text = asked.answer("Which node is out of force, and why?")
        told = [line for line in text.splitlines() if line.startswith(NODE)]
        return None if told and all(words in line for line in told) else text

    with not_in_force(asked.chain):
        until("it is told why", lambda: why_not("the broker"))
    until("it is in force again", lambda: why_not("crishim+broker"))


def who_holds_and_idles(asked: Asked, text: str) -> None:
    *_, got, charged = row(text, "idle").split()
    assert (float(got), float(charged)) == (0.0, 0.0)


def what_a_team_held(asked: Asked, text: str) -> None:
    assert row(text, "idle").split()[0] == row(text, "(all)").split()[0] == "team-a"


def whether_a_key_is_in_use(asked: Asked, text: str) -> None:
    assert re.search(r"key [0-9a-f]{16} is needed by 3 pods", text)


def what_a_drain_does(asked: Asked, text: str) -> None:
    assert f"fits on {NODE}" in row(text, "team-a/free")
    assert "does not fit: " in row(text, "team-a/idle"), "it wants this very card"


def which_version_runs_where(asked: Asked, _: str) -> None:
    """Asked until the restarted broker is on its node's Lease again."""

    def missing() -> str | None:
        text = asked.answer("Which version runs where?")
        nodes = set(row(text, "broker", VERSION).split())
        return None if {"n1,", "n2"} <= nodes and VERSION in row(text, "scheduler") else text

    until("both brokers and the scheduler are listed", missing)


def what_changed(asked: Asked, text: str) -> None:
    assert "Scheduled" in row(text, "pod team-a/idle")
    assert "FailedScheduling" in row(text, "pod team-a/waiting")


def what_is_at_its_limit(asked: Asked, text: str) -> None:
    header = re.split(r" {2,}", next(line for line in text.splitlines() if "REFUSED" in line))
    cells = {name: re.split(r" {2,}", row(text, f"team-a/{name}")) for name in ("full", "idle")}
    refused = {name: int(found[header.index("REFUSED") - len(header)]) for name, found in cells.items()}
    assert refused == {"full": 1, "idle": 0}


ANSWERS: Final[Mapping[str, Callable[[Asked, str], None]]] = {
    "Who uses card 3?": who_uses_a_card,
    "Why does this pod wait?": why_it_waits,
    "Which node is out of force, and why?": which_node_is_out,
    "Who holds, and does not use?": who_holds_and_idles,
    "What did this team hold this week?": what_a_team_held,
    "Is this key in use?": whether_a_key_is_in_use,
    "What if this node is drained?": what_a_drain_does,
    "Which version runs where?": which_version_runs_where,
    "What changed in the last hour?": what_changed,
    "Is anything at its limit?": what_is_at_its_limit,
}


def test_each_of_ten_questions_is_answered_by_the_command_of_the_page(asked: Asked) -> None:
    assert list(QUESTIONS) == list(ANSWERS)
    until("Prometheus has figures", lambda: None if asked.there.query(HAS_FIGURES) else "none")
    wrong = dict[str, str]()
    for question, holds in ANSWERS.items():
        text = asked.answer(question)
        try:
            holds(asked, text)
        except (AssertionError, ValueError) as error:
            wrong[question] = f"{error!r} of:\n{text}"
    assert not wrong, "\n\n".join(f"{question} {why}" for question, why in wrong.items())
