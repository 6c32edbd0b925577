"""Runs a command line in this process: starting an interpreter costs more than most of the work."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any
from unittest.mock import patch

import structlog


def run(
    main: Callable[[], object], argv: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run `main` with only these arguments and this environment; returns its output and exit code."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    code: object = None
    streams = redirect_stdout(out), redirect_stderr(err)
    with streams[0], streams[1], patch.object(sys, "argv", argv), patch.dict(os.environ, environment, clear=True):
        try:
            with _logs_as_before():
                main()
        except SystemExit as ended:
            code = ended.code or 0
    assert isinstance(code, int)
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(argv, code, out.read(), err.read())


@contextmanager
def _logs_as_before() -> Generator[None]:
    """Restore the logging configuration afterwards, and keep loggers from caching the command's configuration."""
    configure, before, root = structlog.configure, structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def uncached(**settings: Any) -> None:
        settings["cache_logger_on_first_use"] = False
        configure(**settings)

    try:
        with patch.object(structlog, "configure", uncached):
            yield
    finally:
        configure(**before)
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)
