"""Metrics of a node's daemons, fetched from the host: starting a program in the node for each request is slow."""

from __future__ import annotations

import http.client
from contextlib import closing

from rig.nodes.machine import Machine
from rig.patience import patience_s


def everywhere(port: int) -> str:
    """A value of `--metrics-address` that the host can reach."""
    return f"0.0.0.0:{port}"


def asked(machine: Machine, port: int, path: str = "/metrics") -> tuple[int, str]:
    """Status and text; raises OSError if nothing answers."""
    with closing(http.client.HTTPConnection(str(machine.addresses.ip), port, timeout=patience_s())) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def why_not_ready(machine: Machine, port: int) -> str | None:
    """Query /readyz, as kubelet does."""
    try:
        status, text = asked(machine, port, "/readyz")
    except OSError as error:
        return str(error)
    return None if status == http.client.OK else text


def figures(machine: Machine, port: int) -> dict[str, float]:
    """Values by series as on the page: `partage_crishim_held_total{outcome="passed"}`."""
    _, text = asked(machine, port)
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {series: float(value) for series, _, value in lines}
