"""Every process says the version that was installed."""

from __future__ import annotations

from importlib.metadata import version

from partage_base.version import VERSION


def test_the_version_that_daemons_say_is_the_installed_one() -> None:
    assert version("partage") == VERSION
