"""Metric names follow Prometheus' conventions, and its own parser reads them, for any label values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from partage_base.daemon.exposition import Family, Sample, histogram, page
from partage_base.daemon.metrics import Metrics

VALUES = st.floats(allow_nan=False)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"))


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


def test_a_label_has_a_bound(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="label modelName has no bound"):
        metrics.gauge("partage_cards", "Broken.", labels=("node", "modelName"))


def read(families: list[Family]) -> list[tuple[str, dict[str, str], float]]:
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(page(families).decode())
        for sample in family.samples
    ]


@given(TEXTS, TEXTS, VALUES)
def test_any_text_and_any_number_are_read_again(sentence: str, label: str, value: float) -> None:
    sample = Sample(value, {"what": label, "a": "1"})
    assert read([Family("partage_x", "gauge", sentence, (sample,))]) == [
        ("partage_x", {"what": label, "a": "1"}, value)
    ]


def test_what_is_no_number_is_read_as_such() -> None:
    (name, _, value) = read([Family("partage_x", "gauge", "X.", (Sample(math.nan),))])[0]
    assert name == "partage_x"
    assert math.isnan(value)


def test_a_histogram_counts_up_and_ends_with_all() -> None:
    samples = histogram((0.1, 1), (2, 3, 4), 99.5, {"node": "n1"})
    assert read([Family("partage_x_seconds", "histogram", "X.", samples)]) == [
        ("partage_x_seconds_bucket", {"node": "n1", "le": "0.1"}, 2),
        ("partage_x_seconds_bucket", {"node": "n1", "le": "1.0"}, 5),
        ("partage_x_seconds_bucket", {"node": "n1", "le": "+Inf"}, 9),
        ("partage_x_seconds_count", {"node": "n1"}, 9),
        ("partage_x_seconds_sum", {"node": "n1"}, 99.5),
    ]


def test_a_value_on_a_bound_is_within_it() -> None:
    metrics = Metrics("test")
    metrics.histogram("partage_x_seconds", "X.", buckets=(1, 0.1)).observe(0.1)
    assert b'partage_x_seconds_bucket{le="0.1"} 1.0' in metrics.page()


def test_two_metrics_of_one_name_are_a_mistake() -> None:
    metrics = Metrics("test")
    metrics.gauge("partage_x", "X.")
    with pytest.raises(ValueError, match="partage_x: there is one of that name"):
        metrics.gauge("partage_x", "X.")


def test_labels_must_be_those_of_the_metric() -> None:
    gauge = Metrics("test").gauge("partage_x", "X.", labels=("node",))
    with pytest.raises(ValueError, match="pod were given; allowed: node"):
        gauge.labels(pod="p")


def test_a_counter_only_grows() -> None:
    with pytest.raises(ValueError, match="only grows"):
        Metrics("test").counter("partage_x_total", "X.").inc(-1)
