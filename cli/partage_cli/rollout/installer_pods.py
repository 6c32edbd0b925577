"""Why a node's installer has reported nothing, from its pod. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from partage_cli.own_pods import OwnPod

DAEMON_SET: Final = "partage-installer"
LABELS: Final = f"app.kubernetes.io/name={DAEMON_SET},app.kubernetes.io/component=installer"
_LONGEST: Final = 300


def why_silent(node: str, *, pods: Iterable[OwnPod], namespace: str) -> str:
    pod = next((each for each in pods if each.spec.node_name == node), None)
    if pod is None:
        return f"no installer is on it: kubectl -n {namespace} describe daemonset {DAEMON_SET}"
    look = f"kubectl -n {namespace} logs {pod.metadata.name}"
    for container in pod.status.container_statuses:
        ended = container.state.terminated or container.last_state.terminated
        if ended is not None:
            return f"its installer ended with exit code {ended.exit_code}: {_last_line(ended.message) or look}"
        if (waits := container.state.waiting) is not None:
            return f"its installer waits: {waits.reason} {_last_line(waits.message)}".rstrip()
    if pod.status.phase != "Running":
        return f"its installer is {pod.status.phase}: {_last_line(pod.status.message) or pod.metadata.name}"
    return f"its installer runs and has said nothing; does it reach the API server? {look}"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:_LONGEST] if lines else ""
