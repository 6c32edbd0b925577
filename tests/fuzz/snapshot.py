"""Any bytes are a snapshot that can be replayed or one refusal; a replay never allocates more than there is."""

from __future__ import annotations

from typing import Final

from fuzz import _codecs
from partage_cli.simulation import Job, Protocol
from partage_cli.simulation.policies import decider_with
from partage_cli.simulation.runs import Replayer
from partage_cli.simulation.snapshots import snapshot_of
from partage_plugins.errors import PartageError
from support.gpu_fleet import card
from unit.cli.simulation.snapshots_made import holding, node, pod, printed

_, _SIDE = decider_with("binpack")
_PROTOCOL: Final = Protocol(arrivals_percent=20)
_MOST_REPLAYED: Final = 64
SEEDS: Final = (
    printed(node("n1", card("a"), card("b")), holding("p", 500, node="n1", card_id="a"), pod("q", 250)),
    printed(node("n1", card("a", pool="kubelet"), card("b")), pod("q", 1000), pod("d", cpu="500m", node="n1")),
    printed(node("n1", card("a")), node("n2", text="{}"), pod("q", 100, cpu="1e3")),
)
DICTIONARY: Final = (
    *_codecs.JSON_WORDS,
    b"partage.dev/gpu-milli",
    b"initContainers",
    b"restartPolicy",
    b"Always",
    b"Ki",
)


def target(data: bytes) -> str:
    try:
        found = snapshot_of(data, "snapshot", _SIDE)
    except PartageError as error:
        if not str(error).isprintable():
            raise AssertionError(f"a refusal that moves cursors: {error!r}") from error
        return "refused"
    if not 0 <= found.now.allocated <= 100:
        raise AssertionError(f"{found.now.allocated} % are allocated")
    if len(found.workload.requests) > _MOST_REPLAYED:
        return "large"
    run = Replayer(found.workload, _PROTOCOL).run(Job("binpack", 1))
    return "placed" if run.pods > run.unplaced else "unplaced"
