"""The end of all grants on a machine whose daemons have ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_base.claim_records import ClaimRecords
from partage_cli.machine.setup.errors import Unfit
from partage_dra.spec_file import SpecFiles
from partage_isolation.wire.engines import killed, living

_SHOWN: Final = 12


def end_grants(root: Path, *, kills: bool, say: Callable[[str], None]) -> None:
    """No container gets one any more. Raises `Unfit` where containers have some and are not to be killed."""
    left = living(root)
    if left and not kills:
        names = ", ".join(each.id[:_SHOWN] for each in left)
        raise Unfit(
            f"containers of other engines have grants that --purge would take away: {names}; add --all to kill them"
        )
    records, specs = ClaimRecords(root), SpecFiles(root)
    for uid in records.uids():
        specs.remove(uid)
        records.remove(uid)
    for container in killed(root):
        say(f"container {container.id[:_SHOWN]} of another engine is killed, since its grant ends")
