"""Records the lines that inputs reach, which distinguish useful inputs from useless ones.

From Python 3.12 on, each line reports only once, so watching costs almost nothing. Before, every line always reports,
which is slow: only runs that request it are watched, and the caller requests a sample of them.
"""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

REPORTS_ONCE = sys.version_info >= (3, 12)


class Reach:
    """The lines reached so far in files below the given folders."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.lines: set[tuple[str, int]] = set()
        self._folders = tuple(folders)
        self._known: dict[CodeType, bool] = {}

    @contextmanager
    def watching(self, *, closely: bool) -> Generator[None]:
        before = sys.gettrace()
        if REPORTS_ONCE or not closely:
            yield
            return
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)

    @contextmanager
    def reporting(self) -> Generator[None]:
        """Enables one report per line inside, where Python supports it."""
        if sys.version_info >= (3, 12):
            tool, events = sys.monitoring.COVERAGE_ID, sys.monitoring.events.LINE
            sys.monitoring.use_tool_id(tool, "partage-fuzz")
            sys.monitoring.register_callback(tool, events, self._line)
            sys.monitoring.set_events(tool, events)
            try:
                yield
            finally:
                sys.monitoring.set_events(tool, 0)
                sys.monitoring.free_tool_id(tool)
        else:
            yield

    def _is_ours(self, code: CodeType) -> bool:
        if code not in self._known:
            self._known[code] = code.co_filename.startswith(self._folders) and "/.venv/" not in code.co_filename
        return self._known[code]

    if sys.version_info >= (3, 12):

        def _line(self, code: CodeType, line: int) -> object:
            if self._is_ours(code):
                self.lines.add((code.co_filename, line))
            return sys.monitoring.DISABLE

    def _trace(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        if not self._is_ours(frame.f_code):
            return None
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._trace
