"""partage-oci under the sanitizers, in a folder with a short path, as sockets need it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from support.oci_program import Program, sanitized


@pytest.fixture
def program() -> Iterator[Program]:
    with TemporaryDirectory() as folder:
        yield Program(Path(folder), sanitized())
