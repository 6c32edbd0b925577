"""The tests of a subject: one for each check that applies."""

from __future__ import annotations

from typing import ClassVar, Final

from partage_plugins.testing import (
    adjustment_checks,
    allocation_checks,
    answer_checks,
    count_checks,
    life_checks,
    request_checks,
)
from partage_plugins.testing.check import Check
from partage_plugins.testing.subject import Subject
from partage_plugins.testing.trial import failure

try:
    import pytest
except ImportError:
    raise ImportError("partage_plugins.testing.suite needs pytest: pip install pytest") from None


_OF_SCHEDULER: Final = (request_checks, answer_checks, allocation_checks, count_checks)
_OF_NODE: Final = (life_checks, adjustment_checks)


class Conformance:
    """What pytest collects for a subject; authors may also subclass it as `Test…` and set theirs."""

    subject: ClassVar[Subject]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Create one test for each check that applies."""
        if "conformance_check" in metafunc.fixturenames:
            metafunc.parametrize("conformance_check", tuple(checks_of(self.subject)))

    def test_conformance(self, conformance_check: str) -> None:
        """Fails with the reason that the kit reports."""
        check = checks_of(self.subject)[conformance_check]
        if why := failure(check, self.subject):
            pytest.fail(f"{why.rstrip()}\n\npromised: {check.promise}", pytrace=False)


def checks_of(subject: Subject) -> dict[str, Check]:
    """The checks that apply, by name, in the order in which they run."""
    found = (each for module in (*_OF_SCHEDULER, *_OF_NODE) for each in vars(module).items())
    return {name: each for name, each in found if isinstance(each, Check) and each.needs <= subject.has}
