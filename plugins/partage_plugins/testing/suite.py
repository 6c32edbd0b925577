"""The kit as pytest sees it: subclass `Conformance`, and each check that applies is a test."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import msgspec

from partage_plugins.testing.catalogue import checks_of, promise_of
from partage_plugins.testing.report import Report
from partage_plugins.testing.runner import run
from partage_plugins.testing.subject import Subject

try:
    import pytest
except ImportError:
    raise ImportError("partage_plugins.testing.suite needs pytest: pip install pytest") from None


class Conformance:
    """Subclass it as `Test…` and give the subject; the checks run once for each class."""

    subject: ClassVar[Subject]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test of each check that applies."""
        if "conformance_check" in metafunc.fixturenames:
            metafunc.parametrize("conformance_check", tuple(checks_of(self.subject)))

    def test_conformance(self, conformance_check: str) -> None:
        """Fails with the reason of the kit."""
        result = _report(msgspec.json.encode(self.subject)).of(conformance_check)
        if not result.passed:
            promise = promise_of(checks_of(self.subject)[conformance_check])
            pytest.fail(f"{result.why}\n\npromised: {promise}\n{result.trace}".rstrip(), pytrace=False)


@cache
def _report(subject: bytes) -> Report:
    return run(msgspec.json.decode(subject, type=Subject))
