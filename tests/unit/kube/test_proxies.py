"""Which addresses use the environment's proxy."""

from __future__ import annotations

import pytest

from partage_base.kube.proxies import proxy_of

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("url", "excepted"),
    [
        ("https://10.96.0.1:443", "10.96.0.0/12"),
        ("https://10.96.0.1:443", "192.0.2.1, 10.96.0.1"),
        ("https://10.96.0.1", "10.96.0.1:443"),
        ("https://[fd00::1]:6443", "fd00::/8"),
        ("https://[fd00::1]:6443", "[fd00::1]:6443"),
        ("https://[fd00::1]:6443", "fd00::1"),
        ("https://api.cluster.example:6443", "cluster.example"),
        ("https://api.cluster.example:6443", ".cluster.example"),
        ("https://api.cluster.example:6443", "*.Cluster.example"),
        ("https://cluster.example:6443", "cluster.example:6443"),
        ("https://192.0.2.1", "*"),
        ("https://127.0.0.1:6443", ""),
        ("https://localhost:6443", ""),
    ],
)
def test_what_no_proxy_names_is_called_straight(url: str, excepted: str) -> None:
    assert proxy_of(url, {"HTTPS_PROXY": PROXY, "NO_PROXY": excepted}) is None


@pytest.mark.parametrize(
    ("url", "excepted"),
    [
        ("https://10.112.0.1:443", "10.96.0.0/12"),
        ("https://10.96.0.1:6443", "10.96.0.1:443"),
        ("https://notcluster.example", "cluster.example"),
        ("https://cluster.example", ".cluster.example"),
        ("https://192.0.2.1", "192.0.2.0/99, ,nonsense/"),
    ],
)
def test_what_it_only_resembles_is_not(url: str, excepted: str) -> None:
    assert proxy_of(url, {"https_proxy": PROXY, "no_proxy": excepted}) == PROXY


def test_each_scheme_has_a_proxy_of_its_own() -> None:
    environ = {"HTTP_PROXY": "proxy.example:1"}
    assert proxy_of("http://192.0.2.1", environ) == "http://proxy.example:1"
    assert proxy_of("https://192.0.2.1", environ) is None
