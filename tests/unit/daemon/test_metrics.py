"""Metrics have the names that Prometheus asks for, or are not made."""

from __future__ import annotations

import pytest

from partage_base.daemon.metrics import Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("test")


def test_what_was_counted_is_on_the_page_and_nothing_else(metrics: Metrics) -> None:
    metrics.counter("partage_requests_total", "Requests.", labels=("method",)).labels(method="Status").inc()
    metrics.histogram("partage_request_seconds", "Time of a request.", buckets=(0.1, 1)).observe(0.5)
    metrics.gauge("partage_card_memory_bytes", "Memory of a card.").set(3)
    page = metrics.page().decode()
    names = {line.partition("{")[0].partition(" ")[0] for line in page.splitlines() if not line.startswith("#")}
    assert names == {
        "partage_build_info",
        "partage_requests_total",
        "partage_request_seconds_bucket",
        "partage_request_seconds_count",
        "partage_request_seconds_sum",
        "partage_card_memory_bytes",
    }
    assert 'partage_requests_total{method="Status"} 1.0' in page


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("requests_total", "partage_ and lower-case words"),
        ("partage", "partage_ and lower-case words"),
        ("partage_Requests_total", "partage_ and lower-case words"),
        ("partage__requests_total", "partage_ and lower-case words"),
        ("partage_requests_total\n", "partage_ and lower-case words"),
        ("partage_requests", "end in _total"),
        ("partage_wait_ms_total", "ms is no base unit"),
        ("partage_seconds_wait_total", "belongs at the end"),
    ],
)
def test_a_counter_that_breaks_the_rules_is_not_made(metrics: Metrics, name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        metrics.counter(name, "Broken.")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("partage_requests_total", "they alone, end in _total"),
        ("partage_card_memory_mib", "mib is no base unit"),
        ("partage_load_percent", "percent is no base unit"),
    ],
)
def test_a_gauge_that_breaks_the_rules_is_not_made(metrics: Metrics, name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        metrics.gauge(name, "Broken.")


def test_a_histogram_says_its_unit(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="a histogram ends in _seconds, _bytes, _ratio"):
        metrics.histogram("partage_request_time", "Broken.", buckets=(1,))


def test_a_label_is_lower_case_words(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="label modelName"):
        metrics.gauge("partage_cards", "Broken.", labels=("node", "modelName"))
