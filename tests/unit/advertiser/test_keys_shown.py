"""Prometheus gets the keys that a node trusts, that it has none, or nothing where no crishim reports them."""

from __future__ import annotations

from partage_advertiser.service import AdvertiserMetrics
from partage_base.daemon.metrics import Metrics


def test_the_page_has_each_key_and_how_many_there_are() -> None:
    metrics, keys = Metrics("advertiser"), list[str]()
    AdvertiserMetrics(metrics, "n1", lambda: keys)
    assert 'partage_node_keys{node="n1"} 0.0\n' in metrics.page().decode()
    keys.append("0123456789abcdef")
    page = metrics.page().decode()
    assert 'partage_node_keys{node="n1"} 1.0\n' in page
    assert 'partage_node_key_info{key="0123456789abcdef",node="n1"} 1.0\n' in page


def test_of_a_node_without_crishim_no_keys_are_missed() -> None:
    metrics = Metrics("advertiser")
    AdvertiserMetrics(metrics, "n1", lambda: None)
    assert "partage_node_keys{" not in metrics.page().decode()
