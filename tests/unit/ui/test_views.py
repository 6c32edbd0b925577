"""The content of each view, for whom it is, and that others' texts are escaped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_cli.nodes.reports import NodeReport, Report
from partage_cli.tables import printable
from partage_cli.usage.report import HeldTime
from partage_isolation.wire.messages import BrokerReport
from partage_plugins.api import Card
from partage_plugins.api.inventory import Ready
from partage_ui.facts import Facts, Scope, Week, node_told
from partage_ui.history import History
from partage_ui.html import Html, tag
from partage_ui.objects import Needs, PodFact, PodPart, SeenPod, fact_of, used_by
from partage_ui.views.catalogue import VIEWS, fragment
from partage_ui.views.parts import ROWS, Query, read_query
from partage_ui.workload import promised
from support import broker
from support.objects import allocation, pod_body, read
from support.ui_stage import GIB, SENTENCE, a_card, a_grant, held, told_of

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
FIRST, SECOND = a_card(0), a_card(1)
ALL = Scope()


def seen(view: str, facts: Facts, scope: Scope = ALL, **query: object) -> str:
    """The text of a view, with separated words."""
    return " ".join(Words.of(fragment(VIEWS[view], facts, scope, Query(**query))))  # type: ignore[arg-type]


class Words(HTMLParser):
    """The parts that a browser would treat as text, elements and attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    @classmethod
    def of(cls, markup: str) -> list[str]:
        reader = cls()
        reader.feed(markup)
        reader.close()
        return reader.words

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs


def node(name: str, *cards: Card, why: str = "") -> NodeReport:
    return NodeReport(node=name, ready=Ready(crishim=True, broker=True), why=why, cards=cards)


def waits(name: str = "train-0", *, why: str = SENTENCE, needs: Needs | None = None) -> PodFact:
    since = NOW - timedelta(minutes=12)
    return PodFact(namespace="team-a", name=name, uid=f"uid-{name}", since=since, why=why, needs=needs, asks="a")


def has(name: str, card: Card, *, namespace: str = "team-a", milli: int = 500, gib: int = 8) -> PodFact:
    pod = broker.pod(name, namespace)
    given_to = allocation(pod.uid, "n1", a_grant(card, milli=milli, gib=gib))
    return PodFact(
        namespace=namespace,
        name=name,
        uid=pod.uid,
        node="n1",
        allocation=given_to,
        usages=used_by(given_to),
        workloads=tuple(promised(pod, "n1", given_to)),
    )


def facts(*pods: PodFact, told: BrokerReport | None = None, history: History | None = None, **more: object) -> Facts:
    """One node with two cards."""
    past = History() if history is None else history
    tells = {} if told is None else {"n1": node_told("n1", told, past, NOW)}
    said = {"nodes": Report(nodes=(node("n1", FIRST, SECOND),)), "told": tells, **more}
    return Facts(at=NOW, pods=pods, **said)  # type: ignore[arg-type]


def of_one(*, wanted: float, got: float, gib: float = 5, refused: int = 0) -> BrokerReport:
    grant = a_grant(FIRST)
    figures = held(grant, wanted=wanted, got=got, gib=gib, refused=refused)
    return told_of((FIRST, SECOND), broker.container(broker.pod(), figures))


def test_a_waiting_pod_says_since_when_and_why_and_how_to_hear_all() -> None:
    said = seen("waiting", facts(waits()))
    assert "1 pod waits, the longest for 12m." in said
    assert SENTENCE in said
    assert "partage explain team-a/train-0" in said


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (Needs(1, 900, 10 * GIB), "The nearest card has 500 milli and 71 GiB free: it fits with 400 milli less"),
        (Needs(1, 400, 75 * GIB), "it fits with 4 GiB less"),
        (Needs(1, 400, None), "One card has room for that much: something else keeps it"),
        (Needs(2, 400, GIB), "It needs 2 cards at once."),
        (None, "The whole answer:"),
    ],
)
def test_what_would_make_it_fit_is_said_by_the_card_that_lacks_least(needs: Needs | None, words: str) -> None:
    others = (has("a", FIRST), has("b", SECOND, milli=700, gib=8))
    assert words in seen("waiting", facts(waits(needs=needs), *others))


def test_cards_of_nodes_that_are_not_in_force_make_nothing_fit() -> None:
    out = facts(waits(needs=Needs(1, 1, 1)), nodes=Report(nodes=(node("n1", FIRST, why="broker not in force"),)))
    assert "A node in force with a card that is shared: there is none." in seen("waiting", out)


@pytest.mark.parametrize(
    ("wanted", "got", "words"),
    [(0.9, 0.5, "yes"), (0.9, 0.3, "200 milli short"), (0.3, 0.3, "yes"), (0.9, 0.46, "yes")],
)
def test_a_container_got_what_it_was_promised_or_it_is_said_by_how_much_it_did_not(
    wanted: float, got: float, words: str
) -> None:
    """Of a guarantee of 500 milli; unused time is not owed."""
    assert words in seen("workloads", facts(has("train-0", FIRST), told=of_one(wanted=wanted, got=got)))


def test_a_pod_of_which_no_broker_tells_is_there_with_what_it_was_promised() -> None:
    said = seen("workloads", facts(has("train-0", FIRST)))
    assert "not told yet" in said
    assert "500 milli promised, not metered" in said


def test_what_was_wanted_in_any_minute_of_the_hour_is_no_idle_share() -> None:
    told, history = of_one(wanted=0.1, got=0.1), History()
    assert "400 of 500 milli" in seen("idle", facts(told=told))
    history.note((told.containers[0].key, FIRST.id), NOW.timestamp() - 1800, wanted=0.4, got=0.4)
    said = seen("idle", facts(told=told, history=history))
    assert "100 of 500 milli" in said
    assert "partage resize team-a/train-0 --container main --share 400" in said


def test_who_may_not_list_nodes_sees_own_cards_and_nobody_elses_names_or_amounts() -> None:
    all_facts = facts(
        has("mine", FIRST, gib=8),
        has("theirs", FIRST, namespace="team-b", milli=300),
        has("far", SECOND, namespace="team-b"),
    )
    mine = Scope(frozenset({"team-a"}), nodes=False)
    for view in VIEWS:
        said = seen(view, all_facts, mine)
        assert "team-b" not in said
        assert "800" not in said
    said = seen("cards", all_facts, mine)
    assert "team-a/mine and 1 more" in said
    assert "500 milli are yours" in said
    assert "n1 · 1" not in said
    assert "800 promised, 0 used of 1000 milli" in seen("cards", all_facts)


def test_health_says_what_to_type_and_findings_of_nodes_to_those_alone_who_see_all() -> None:
    told = told_of(
        (FIRST,), broker.container(broker.pod(), held(a_grant(FIRST), gib=8, refused=2)), findings=("odd memory",)
    )
    lost = a_card(0, health="lost", why="Xid 79")
    sick = facts(
        told=told, nodes=Report(nodes=(node("n1", lost), node("n2", why="no heartbeat"))), doubts=("none leads",)
    )
    said = seen("health", sick)
    for words in (
        "card 0 is lost: Xid 79",
        "it is not in force: no heartbeat",
        "odd memory",
        "none leads",
        "sudo partage doctor",
    ):
        assert words in said
    said = seen("health", sick, Scope(frozenset({"team-a"}), nodes=False))
    assert "main is at its limit of 8 GiB, and was refused 2 times" in said
    assert "odd memory" not in said
    assert "n2" not in said
    assert "Nothing is found wrong" in seen("health", sick, Scope(frozenset(), nodes=True))


def test_of_many_rows_one_page_is_made_and_the_last_one_where_there_are_fewer() -> None:
    many = facts(*(waits(f"p{number:05}") for number in range(5 * ROWS + 1)))
    assert fragment(VIEWS["waiting"], many, ALL, Query(page=2)).count("<tr") == ROWS + 1
    assert "Page 6 of 6, 251 in all" in seen("waiting", many, page=99)
    assert "p00250" in seen("waiting", many, text="p0025", page=1)


@pytest.mark.parametrize("page", ["", "0", "-1", "²", "9" * 50, "x"])
def test_a_page_that_is_no_number_is_the_first_one(page: str) -> None:
    assert read_query({"page": page}).page == 1


HOSTILE = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</table>", "&lt;b&gt;", "\u202egnp"]
    ),
)


@settings(max_examples=20)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_whatever_others_write_is_text(name: str, why: str, model: str) -> None:
    def whole(name: str, why: str, model: str) -> Words:
        card = replace(FIRST, model=model)
        pods = (waits(name, why=why or "x"), has(name, card))
        tells = of_one(wanted=0.9, got=0.1, gib=8, refused=1)
        tells = replace(tells, findings=(why,) if why else ("x",))
        there = facts(
            *pods, told=tells, nodes=Report(nodes=(node("n1", card, why=why),), faults={"n2": why}), troubles=(why,)
        )
        reader = Words()
        for view in VIEWS.values():
            reader.feed(fragment(view, there, ALL, Query()))
        reader.close()
        return reader

    usual, found = whole("pod", "x", "model"), whole(name, why, model)
    assert found.elements == usual.elements or not why
    assert {key for key, _ in found.attributes} <= {key for key, _ in usual.attributes} | {"rel"}
    assert printable(name) in "\n".join(found.words)


def test_text_in_attributes_ends_no_attribute() -> None:
    made = tag("a", "x", title='" onclick="y', href="?q=<&>")
    assert made == '<a title="&quot; onclick=&quot;y" href="?q=&lt;&amp;&gt;">x</a>'
    assert type(made + "<b>") is str  # text added to markup becomes plain text
    assert tag("p", made + "<b>") == Html(f"<p>{tag('i', made + '<b>')[3:-4]}</p>")


def a_pod(**more: object) -> SeenPod:
    body = pod_body("p", **more)  # type: ignore[arg-type]
    return read(SeenPod, **body)


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (a_pod(milli=500), "partage-scheduler has not said yet why"),
        (a_pod(milli=500, gates=("quota",)), "it is not to be placed while it has scheduling gates: quota"),
        (a_pod(), "partage-scheduler has not said yet why"),
    ],
)
def test_a_pod_of_ours_that_is_on_no_node_waits_and_says_why(pod: SeenPod, why: str) -> None:
    found = fact_of(pod, "partage-scheduler")
    assert found is not None
    assert why in found.why


def test_pods_of_others_that_ask_for_no_card_of_ours_are_not_kept() -> None:
    assert fact_of(a_pod(), "another") is None
    assert fact_of(a_pod(node="n1"), "partage-scheduler") is None
    assert fact_of(a_pod(milli=100), "another") is not None


def test_a_request_that_cannot_be_read_is_shown_as_it_is_written() -> None:
    found = fact_of(a_pod(limits={"partage.dev/gpu-mlli": "5"}), "partage-scheduler")
    assert found is not None
    assert (found.asks, found.needs) == ("partage.dev/gpu-mlli 5", None)


def test_a_pod_that_waits_to_grow_is_among_those_that_wait() -> None:
    wish = {"type": "alloc.partage.dev/Resized", "status": "False", "reason": "Waits", "message": "no room"}
    found = fact_of(a_pod(milli=500, node="n1", status={"conditions": [wish]}), "partage-scheduler")
    assert found is None or found.why == "no room"
    given_one = has("train-0", FIRST)
    assert "To grow, on its own card:" in seen("waiting", facts(replace(given_one, why="no room", since=NOW)))


def test_the_parts_of_a_pod_that_are_read_have_defaults() -> None:
    assert PodPart() == read(PodPart)


def test_namespaces_show_a_week_where_a_prometheus_has_it() -> None:
    held = HeldTime(namespace="team-a", milli_hours=84000.4, gib_hours=1344.0)
    week = Week(until=NOW, held={"team-a": held}, notes=("it has figures for 50 % of that time",))
    assert "Share, this week" not in seen("namespaces", facts(has("train", FIRST)))
    shown = seen("namespaces", facts(has("train", FIRST), has("other", SECOND, namespace="team-b"), week=week))
    assert "84000 milli-hours" in shown
    assert "1344.0 GiB-hours" in shown
    assert "50 % of that time" in shown
    assert "84000" not in seen("namespaces", facts(has("train", FIRST), week=week), Scope(frozenset({"team-b"}), False))
