"""A process is identified by a descriptor, or known to have ended."""

from __future__ import annotations

import os
import select
import subprocess

import pytest

from partage_base.processes import process_descriptor
from rig.patience import patience_s


def test_the_descriptor_of_a_process_is_readable_when_it_has_ended() -> None:
    with subprocess.Popen(["sleep", "100"]) as process:
        descriptor = process_descriptor(process.pid)
        assert descriptor is not None
        assert not select.select([descriptor], [], [], 0)[0]
        process.kill()
        assert select.select([descriptor], [], [], patience_s())[0]
        os.close(descriptor)


@pytest.mark.parametrize("error", [ProcessLookupError, FileNotFoundError])
def test_one_that_is_gone_or_just_going_has_none(error: type[OSError], monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_pid: int) -> int:
        raise error

    monkeypatch.setattr(os, "pidfd_open", gone)
    assert process_descriptor(1) is None
