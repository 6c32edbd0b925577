from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def loop() -> str:
    """The loop that crishim runs on, for async tests."""
    return "uvloop"
