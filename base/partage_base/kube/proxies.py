"""Which proxy the environment names for an address, by kubectl's rules. Pure.

`HTTPS_PROXY` or `HTTP_PROXY` by the URL's scheme, unless `NO_PROXY` excludes it: a list of addresses, networks, names
with all their subdomains, or `*`; each may have a port. A loopback address is never proxied. The standard library does
not support networks in `NO_PROXY`, which is how clusters are named in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

_PORTS: Final = {"https": 443, "http": 80}


def proxy_of(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy, or None; raises `ValueError` if `url` is not a valid URL."""
    parts = urlsplit(url)
    proxy = _said(environ, f"{parts.scheme}_proxy")
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    if not proxy or _is_excepted(host, port, _said(environ, "no_proxy")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _said(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""


def _is_excepted(host: str, port: int, excepted: str) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host, port, address) for entry in excepted.split(","))


def _matches(entry: str, host: str, port: int, address: IPv4Address | IPv6Address | None) -> bool:
    if entry in ("", "*"):
        return entry == "*"
    if "/" in entry:
        return address is not None and _is_in(address, entry)
    name, _, last = entry.rpartition(":")
    if last.isdecimal() and (":" not in name or name.endswith("]")):  # not a bare IPv6 address
        entry = name.strip("[]")
        if int(last) != port:
            return False
    if address is not None:
        return address == _address(entry)
    below = entry.removeprefix("*")
    return host == entry or host.endswith(below if below.startswith(".") else f".{below}")


def _is_in(address: IPv4Address | IPv6Address, network: str) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
