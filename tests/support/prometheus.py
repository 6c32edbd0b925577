"""A real Prometheus that scrapes a test's targets with the chart's rules."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import threading
import urllib.parse
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import msgspec

from rig.client.wait import until
from rig.patience import patience_s
from rig.programs import ensure
from support.observing import RULES
from support.processes import free_port

HOST: Final = "127.0.0.1"
EVERY: Final = "1s"
FASTER: Final = 60
"""Speed-up of alerts: a minute of `for` or of a range becomes a second."""
LEAST_S, MOST_S = 5, 60
"""Bounds of `for`: the least because a scrape may be late, the most because it stands for an hour."""
_UNITS_S: Final = {"m": 60, "h": 3600, "d": 86400}


class Prometheus:
    def __init__(self, port: int) -> None:
        self._port = port

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer; raises `AssertionError` with the whole answer on an error."""
        with closing(http.client.HTTPConnection(HOST, self._port, timeout=patience_s())) as connection:
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
            said = json.loads(connection.getresponse().read())
        assert said["status"] == "success", f"{parameters}: {said}"
        return said["data"]

    def query(self, expr: str) -> list[dict[str, str]]:
        """The labels of each series in the result."""
        return [each["metric"] for each in self.ask("query", query=expr)["result"]]

    @property
    def firing(self) -> dict[str, list[dict[str, str]]]:
        """Firing alerts, by name."""
        found = dict[str, list[dict[str, str]]]()
        for labels in self.query('ALERTS{alertstate="firing"}'):
            found.setdefault(labels["alertname"], []).append(labels)
        return found

    def fired(self, since_s: float) -> set[str]:
        """Alerts that fired within the last `since_s` seconds, even briefly."""
        asked = f'max_over_time(ALERTS{{alertstate="firing"}}[{max(1, int(since_s))}s])'
        return {labels["alertname"] for labels in self.query(asked)}

    def why_not_up(self, targets: int) -> str | None:
        try:
            up = self.ask("targets", state="active")["activeTargets"]
        except (OSError, json.JSONDecodeError) as error:  # it listens a moment before it is ready
            return str(error)
        well = [each for each in up if each["health"] == "up"]
        return None if len(well) == targets else f"{len(well)} of {targets} targets are up: {up}"


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, Mapping[str, str]]) -> Generator[Prometheus]:
    """Run it on targets by address, with the labels of each. Alerts fire `FASTER`."""
    folder.mkdir()
    rules = msgspec.yaml.decode(RULES.read_bytes())
    for group in rules["groups"]:
        group["rules"] = [faster(rule) if "alert" in rule else rule for rule in group["rules"]]
    (folder / "rules.yaml").write_bytes(msgspec.yaml.encode(rules))
    jobs = [{"targets": [address], "labels": dict(labels)} for address, labels in targets.items()]
    settings = {
        "global": {"scrape_interval": EVERY, "evaluation_interval": EVERY},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "partage", "honor_labels": True, "static_configs": jobs}],
    }
    (folder / "prometheus.yaml").write_bytes(msgspec.yaml.encode(settings))
    port = free_port()
    argv: list[str | Path] = [
        *(ensure("prometheus")["prometheus"], f"--config.file={folder / 'prometheus.yaml'}"),
        *(f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={HOST}:{port}"),
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(argv, stdout=log, stderr=log) as process:
        there = Prometheus(port)
        try:
            until("Prometheus scrapes all", lambda: there.why_not_up(len(targets)))
            yield there
        finally:
            process.kill()


def faster(rule: Mapping[str, Any]) -> dict[str, Any]:
    """The alert with its durations divided by `FASTER`; its thresholds stay."""
    number, unit = int(rule["for"][:-1]), _UNITS_S[rule["for"][-1]]
    waits_s = min(MOST_S, max(LEAST_S, number * unit // FASTER))
    return {**rule, "for": f"{waits_s}s", "expr": re.sub(r"\[(\d+)m\]", r"[\1s]", rule["expr"])}


@contextmanager
def served(text: str) -> Generator[str]:
    """The address of a metrics page like another exporter's."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base
            pass

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"{HOST}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
