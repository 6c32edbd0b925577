"""Usage from the brokers' metrics in Prometheus, which also covers deleted pods."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from partage_base.kube.paths import pods_path
from partage_cli.usage.held import Window
from partage_cli.usage.report import GIB, HOUR_S, HeldTime, UsageReport
from partage_plugins.errors import PartageError, Refused
from partage_plugins.text import one_line

_WITHIN_S: Final = 60.0
_LONGEST_WHY: Final = 300
_MOST_BYTES: Final = 32 << 20
_LEAST_STEP_S: Final = 60
_MOST_STEPS: Final = 5000
_LATE: Final = 0.02
_ALIVE: Final = "partage_broker_free_rows"
"""Every broker exports it, with or without containers."""
_SAMPLED: Final[Mapping[str, tuple[str, float]]] = {
    "milli_hours": ("partage_container_compute_share_ratio", 1000.0),
    "gib_hours": ("partage_container_memory_limit_bytes", 1 / GIB),
    "charged_gib_hours": ("partage_container_memory_charged_bytes", 1 / GIB),
}
"""Gauges; each step with a sample counts."""
_GOT: Final = "partage_container_compute_got_seconds_total"
"""A counter, which loses nothing between two scrapes."""


class PrometheusError(PartageError):
    """Prometheus can't be queried, or returned an error."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where, self.why = where, why

    def __str__(self) -> str:
        return f"Prometheus at {self.where}: {self.why}; is --prometheus its address, as http://HOST:9090?"


class _Sample(msgspec.Struct, frozen=True):
    metric: Mapping[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str = ""
    result: tuple[_Sample, ...] = ()


class _Answered(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    data: _Data = _Data()
    error: str = ""


async def by_prometheus(url: str, window: Window, *, of_namespace: str = "", pods: bool = True) -> UsageReport:
    """Usage of a namespace, or of all if it is empty; without `pods` only sums over namespaces.

    Raises `PrometheusError`, `BadName`, and `Refused` for what is no address.
    """
    by = "namespace, pod" if pods else "namespace"
    return await _asked(_address(url), window, _selector(of_namespace), by)


def _selector(namespace: str) -> str:
    """The namespace's label selector. Raises `BadName` for an invalid name."""
    pods_path(namespace)
    return f"namespace={json.dumps(namespace)}" if namespace else ""


def _address(url: str) -> str:
    try:
        found = urlsplit(url)
        is_address = found.scheme in {"http", "https"} and bool(found.hostname) and found.port != 0
    except ValueError:  # its port is none
        is_address = False
    if not is_address:
        raise Refused(f"--prometheus is no address: {url!r}; allowed: http://HOST:PORT, https too")
    return url.rstrip("/")


async def _asked(url: str, window: Window, selector: str, by: str) -> UsageReport:
    whole_s = max(_LEAST_STEP_S, math.ceil((window.until - window.since).total_seconds()))
    step_s = max(_LEAST_STEP_S, math.ceil(whole_s / _MOST_STEPS))
    span = f"[{whole_s}s:{step_s}s]"
    held: dict[tuple[str, str], dict[str, float]] = {}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_WITHIN_S)) as session:
        asks = _Prometheus(session, url, window.until)
        first = await asks.one(f"min(min_over_time(timestamp({_ALIVE}){span}))")
        times = await asks.one(f"count_over_time((count({_ALIVE}) > 0){span})")
        amounts = {
            name: (f"sum_over_time({series}{{{selector}}}{span})", factor, step_s)
            for name, (series, factor) in _SAMPLED.items()
        }
        amounts["got_milli_hours"] = (f"increase({_GOT}{{{selector}}}[{whole_s}s])", 1000.0, 1)
        for name, (query, factor, seconds) in amounts.items():
            for sample in await asks.samples(f"sum by ({by}) ({query})"):
                key = (sample.metric.get("namespace", ""), sample.metric.get("pod", ""))
                held.setdefault(key, {})[name] = number(sample) * factor * seconds / HOUR_S
    return UsageReport(
        source="prometheus",
        since=window.since,
        until=window.until,
        pods=tuple(HeldTime(namespace=namespace, pod=pod, **found) for (namespace, pod), found in sorted(held.items())),
        notes=tuple(coverage(window, first, 0.0 if times is None else times * step_s / whole_s)),
    )


def coverage(window: Window, first: float | None, part: float) -> Iterator[str]:
    """Notes on the covered period: when the metrics begin, and which fraction of the period they cover."""
    if first is None:
        yield "it has no figures of a broker from that time: does it scrape the brokers' metrics_address?"
        return
    if part < 1 - _LATE:
        began = datetime.fromtimestamp(first, UTC)
        late = began - window.since
        since = f", and none before {began:%Y-%m-%d %H:%M}Z" if late / (window.until - window.since) > _LATE else ""
        yield f"it has figures of brokers for {min(1.0, part) * 100:.0f} % of that time{since}: the rest is not counted"


def number(sample: _Sample) -> float:
    """The sample's value; NaN, infinities and malformed values count as 0."""
    try:
        found = float(sample.value[1])
    except ValueError:
        return 0.0
    return found if math.isfinite(found) else 0.0


class _Prometheus:
    """Queries as of one moment, with bounded response sizes."""

    def __init__(self, session: aiohttp.ClientSession, url: str, at: datetime) -> None:
        self._session, self._url, self._at = session, url, at
        found = urlsplit(url)
        self._where = f"{found.hostname}:{found.port}" if found.port else str(found.hostname)

    async def one(self, query: str) -> float | None:
        samples = await self.samples(query)
        return number(samples[0]) if samples else None

    async def samples(self, query: str) -> tuple[_Sample, ...]:
        form = {"query": query, "time": f"{self._at.timestamp():.3f}"}
        try:
            async with self._session.post(f"{self._url}/api/v1/query", data=form, allow_redirects=False) as response:
                status, body = response.status, await self._body(response)
        except TimeoutError:
            raise PrometheusError(self._where, f"no answer within {_WITHIN_S:g} s") from None
        except aiohttp.ClientError as error:
            raise PrometheusError(self._where, one_line(str(error), _LONGEST_WHY)) from None
        try:
            found = msgspec.json.decode(body, type=_Answered)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise PrometheusError(self._where, f"{status}, and no answer of a Prometheus") from None
        if found.status != "success":
            raise PrometheusError(self._where, one_line(found.error, _LONGEST_WHY))
        return found.data.result

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > _MOST_BYTES:
                raise PrometheusError(self._where, f"an answer of more than {_MOST_BYTES} bytes: ask for one namespace")
        return bytes(body)
