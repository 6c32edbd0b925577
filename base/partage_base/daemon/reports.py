"""Tells people what went wrong in a life, and keeps the exit code of the first error.

Expected errors are one line each, defects keep their traceback.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator

import structlog

from partage_base.daemon.errors import DONE, FAILED, StopHung, exit_code_of, expected, lines_of

_log = structlog.get_logger()


class Report:
    """What has gone wrong so far."""

    def __init__(self) -> None:
        self.exit_code = DONE

    @contextlib.contextmanager
    def noting(self) -> Generator[None]:
        """Tells what is raised within and goes on after it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  (the last place where it can be told)
            self.tell(error)

    def tell(self, error: Exception) -> None:
        """Tells one error. Does not return where a step hangs: it may also hold the loop's own end."""
        known = expected(error)
        for line in (line for one in known for line in lines_of(one)):
            _log.critical(line)
        if not known:
            _log.critical("unexpected error; this is a defect, please report it", exc_info=error)
        self.exit_code = self.exit_code or (exit_code_of(known[0]) if known else FAILED)
        if any(isinstance(one, StopHung) for one in known):
            os._exit(self.exit_code)
