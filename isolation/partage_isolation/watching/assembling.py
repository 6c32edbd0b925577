"""Puts the watching half of a broker together, as its settings say."""

from __future__ import annotations

from partage_base.daemon.metrics import Metrics
from partage_gpu.nvml.pause import Pauses
from partage_isolation.broker.folders import Folders
from partage_isolation.settings import BrokerSettings
from partage_isolation.watching.auditor import Auditor, Books, Lister
from partage_isolation.watching.board import Board
from partage_isolation.watching.engagement import Engagement
from partage_isolation.watching.figures import Figures
from partage_isolation.watching.installed import Installed
from partage_isolation.watching.nvml import NvmlChild
from partage_isolation.watching.suspecting import Rules
from partage_isolation.watching.use import Nvml


def nvml_of(settings: BrokerSettings) -> NvmlChild:
    """Who is asked what processes hold; let go of while the node's driver is to be."""
    pauses = Pauses(settings.root)
    return NvmlChild(
        settings.below_root(settings.driver_root),
        deadline_s=settings.nvml_deadline_s,
        paused=lambda: pauses.reason() is not None,
    )


def auditor_of(settings: BrokerSettings, *, books: Books, samples: Nvml, runtime: Lister, metrics: Metrics) -> Auditor:
    """To be ticked each `audit_every_s`; `samples` may do something of its own with each sample that it takes."""
    return Auditor(
        books=books,
        nvml=samples,
        runtime=runtime,
        engagement=Engagement(Installed(settings.below_root(settings.library_folder), settings.root)),
        board=Board(settings.root),
        figures=Figures(metrics),
        folders=Folders(settings.root).names,
        rules=Rules(context_in_limit=settings.context_in_limit),
        on_violation=settings.on_violation,
    )
