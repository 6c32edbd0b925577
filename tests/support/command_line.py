"""Runs a command line within this process: a start of the interpreter costs more than most of what it does."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch


def run(
    main: Callable[[], object], argv: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """What `main` writes and its exit code, with these arguments and this environment alone."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    code: object = None
    streams = redirect_stdout(out), redirect_stderr(err)
    with streams[0], streams[1], patch.object(sys, "argv", argv), patch.dict(os.environ, environment, clear=True):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    assert isinstance(code, int)
    for stream in (out, err):
        stream.seek(0)
    return subprocess.CompletedProcess(argv, code, out.read(), err.read())
