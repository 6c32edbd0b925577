"""`partage usage`: holdings are summed over an exact period, and facts missing from a source are reported."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.usage.held import PodLife, Window, counted
from partage_cli.usage.report import HeldTime, UsageReport, as_table, fields
from partage_cli.usage.sampled import PrometheusError, by_prometheus, coverage
from partage_plugins.codecs import key_id
from partage_plugins.errors import Refused
from rig.client.binding import signed
from support.fake_prometheus import fake_prometheus
from support.objects import allocation, grant, pod_body, read
from unit.cli.program import partage

NOW: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY: Final = Window(NOW - timedelta(hours=24), NOW)
PRIVATE: Final = Ed25519PrivateKey.generate()
KEYS: Final = {key_id(PRIVATE.public_key()): PRIVATE.public_key()}
HALF: Final = grant("GPU-1", memory=8 << 30)


def ago(hours: float) -> str:
    return (NOW - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def life(
    name: str, began_h: float, *, ended_h: float | None = None, key: Ed25519PrivateKey = PRIVATE, gen: int = 1
) -> PodLife:
    """A pod with half a card and 8 GiB, from `began_h` to `ended_h` hours ago."""
    uid = f"uid-{name}"
    body = pod_body(name, uid=uid, node="n1", annotations=signed(allocation(uid, "n1", HALF, gen=gen), key))
    body["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(began_h)}]
    if ended_h is not None:
        body["status"]["phase"] = "Succeeded"
        body["status"]["containerStatuses"] = [{"state": {"terminated": {"finishedAt": ago(ended_h)}}}]
    return read(PodLife, **body)


def amounts(report: UsageReport) -> dict[str, tuple[float, float]]:
    return {each.pod: (each.milli_hours, each.gib_hours) for each in report.pods}


def test_each_pod_counts_from_when_it_was_bound_to_when_it_ended_within_the_time() -> None:
    pods = [life("runs", 2), life("older", 100), life("ended", 10, ended_h=6), life("long-ago", 100, ended_h=50)]
    found = counted(pods, DAY, KEYS)
    assert amounts(found) == {"runs": (1000, 16), "older": (12000, 192), "ended": (2000, 32)}
    assert (found.namespaces[0].milli_hours, found.namespaces[0].gib_hours) == (15000, 240)
    assert found.notes == ("pods that are no longer there are not counted; --prometheus has them",)


def test_what_is_not_believed_or_not_known_is_named_and_not_counted() -> None:
    timeless = life("timeless", 3, ended_h=1)
    timeless = PodLife(timeless.metadata, timeless.spec, read(type(timeless.status), phase="Failed"))
    forged, resized = life("forged", 2, key=Ed25519PrivateKey.generate()), life("resized", 1, gen=2)
    found = counted([forged, timeless, resized], DAY, KEYS, unread=["team/large"])
    assert amounts(found) == {"resized": (500, 8)}
    assert found.notes[1:] == (
        "team/large, team/forged: not counted, since what they were given can't be believed",
        "team/timeless: not counted, since they do not say from when to when",
        "team/resized: were resized, and count as if they had had their present amounts all the while",
    )
    assert "no public key" in counted([life("a", 1)], DAY, {}).notes[-1]


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(0, 500)), max_size=6))
def test_no_pod_holds_more_than_its_share_for_the_whole_time(spans: list[tuple[float, float]]) -> None:
    lives = [life(f"p{at}", began, ended_h=ended) for at, (began, ended) in enumerate(spans)]
    for milli, gib in amounts(counted(lives, DAY, KEYS)).values():
        assert 0 < milli <= 500 * 24
        assert gib == pytest.approx(milli * 8 / 500)


def test_people_see_the_largest_first_and_the_sum_last() -> None:
    table = as_table(counted([life("a", 1), life("b", 2)], DAY, KEYS), pods=True)
    assert [line.split() for line in table.splitlines()] == [
        ["NAMESPACE", "POD", "MILLI-HOURS", "GIB-HOURS"],
        ["team", "b", "1,000.0", "16.0"],
        ["team", "a", "500.0", "8.0"],
        ["team", "(all)", "1,500.0", "24.0"],
    ]


ANSWERS: Final[Mapping[str, float]] = {
    "timestamp(": DAY.since.timestamp(),
    "count_over_time": 24 * 60,
    "share_ratio": 0.5 * 60,
    "limit_bytes": (8 << 30) * 60.0,
    "increase(partage_container_compute_got_seconds_total": 0.25 * 3600,
    "charged_bytes": (4 << 30) * 60.0,
}


def sampled(answer: Mapping[str, float] = ANSWERS, body: bytes = b"") -> tuple[UsageReport, list[str]]:
    async def whole() -> tuple[UsageReport, list[str]]:
        async with fake_prometheus(answer, body) as (url, asked):
            return await by_prometheus(url, DAY, of_namespace="team-a"), asked

    return asyncio.run(whole())


def test_a_prometheus_tells_of_pods_that_are_gone_and_what_they_got() -> None:
    found, asked = sampled()
    assert found.pods == (
        HeldTime(
            namespace="team-a", pod="gone-0", milli_hours=500, gib_hours=8, got_milli_hours=250, charged_gib_hours=4
        ),
    )
    assert found.notes == ()
    assert asked[2] == (
        'sum by (namespace, pod) (sum_over_time(partage_container_compute_share_ratio{namespace="team-a"}[86400s:60s]))'
    )
    assert json.loads(json.dumps(fields(found), default=str)).keys() >= {"pods", "namespaces", "notes"}


def test_what_a_prometheus_does_not_cover_is_said() -> None:
    half = {**ANSWERS, "count_over_time": 12 * 60, "timestamp(": DAY.since.timestamp() + 12 * 3600}
    (note,) = sampled(half)[0].notes
    assert note == (
        "it has figures of brokers for 50 % of that time, and none before 2026-03-02 00:00Z: the rest is not counted"
    )
    assert "no figures of a broker" in next(coverage(DAY, None, 0.0))


@pytest.mark.parametrize("body", [b"<html>", b'{"status":"error","error":"too many samples"}', b"[" * 9999])
def test_a_prometheus_that_says_no_or_is_none_is_one_line(body: bytes) -> None:
    with pytest.raises(PrometheusError, match=r"Prometheus at 127\.0\.0\.1:\d+: .*--prometheus"):
        sampled(body=body)


def test_an_address_that_is_none_is_refused_without_its_password() -> None:
    for wrong in ("localhost:9090", "http://localhost:99999", "http://localhost:port"):
        with pytest.raises(Refused, match="allowed: http"):
            asyncio.run(by_prometheus(wrong, DAY))
    with pytest.raises(PrometheusError) as raised:
        asyncio.run(by_prometheus("http://user:hunter2@127.0.0.1:1", DAY))
    assert "hunter2" not in str(raised.value)


def test_a_time_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    for wrong in ("24", "0h", "9999d", "-1h", "1.5h"):
        done = partage(tmp_path, "usage", "--since", wrong)
        assert (done.returncode, "allowed: minutes, hours" in done.stderr) == (2, True), wrong


def test_the_page_has_the_shape_of_the_report() -> None:
    page = (Path(__file__).parents[3] / "docs/configuration.md").read_text()
    block = json.loads(page.partition("### partage usage")[2].partition("```json")[2].partition("```")[0])
    assert block.keys() == fields(sampled()[0]).keys()
    assert block["pods"][0].keys() == block["namespaces"][0].keys() == {*HeldTime.__struct_fields__}
