from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def loop() -> str:
    """The event loop of crishim, for async tests."""
    return "uvloop"
