"""The extender may listen on loopback, or where callers authenticate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partage_scheduler.settings import SchedulerSettings

PAPERS: dict[str, Any] = {
    "extender_certificate": Path("/etc/partage/extender/tls.crt"),
    "extender_key": Path("/etc/partage/extender/tls.key"),
    "extender_callers": Path("/etc/partage/extender/ca.crt"),
}


@pytest.mark.parametrize("address", ["", "127.0.0.1:9410", "127.8.8.8:9410", "[::1]:9410"])
def test_loopback_needs_no_certificate(address: str) -> None:
    assert SchedulerSettings(extender_address=address).certificate_files is None


@pytest.mark.parametrize("address", ["0.0.0.0:9410", "[::]:9410", "10.0.0.1:9410", "localhost:9410", "host:9410"])
def test_who_may_be_anybody_needs_a_certificate(address: str) -> None:
    with pytest.raises(ValueError, match="extender_certificate"):
        SchedulerSettings(extender_address=address)
    assert SchedulerSettings(extender_address=address, **PAPERS).certificate_files is not None


@pytest.mark.parametrize("missing", list(PAPERS))
def test_the_three_files_are_given_together(missing: str) -> None:
    with pytest.raises(ValueError, match="together"):
        SchedulerSettings(**{name: path for name, path in PAPERS.items() if name != missing})


def test_files_lie_below_the_root() -> None:
    certificate_files = SchedulerSettings(root=Path("/some/root"), **PAPERS).certificate_files
    assert certificate_files is not None
    assert certificate_files.key == Path("/some/root/etc/partage/extender/tls.key")
