#!/usr/bin/env python3

"""Runs a command and draws its output as an animated SVG, in which each line appears at the time when it was printed.

    tools/record.py OUT.svg -- COMMAND...

It shows a screen of 28 lines, which scrolls. A pause longer than two seconds is shown as two seconds. At the end the
last screen stays for a while, and the animation starts over.
"""

from __future__ import annotations

import subprocess
import sys
import time
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

LONGEST_PAUSE_S: Final = 2.0
STAYS_S: Final = 8.0
"""How long the last screen is shown before the animation starts over."""
COLUMNS: Final = 132
SCREEN: Final = 28
LINE_PX, CHAR_PX, MARGIN_PX = 18, 7.3, 16
STYLE: Final = (
    "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}"
    ".typed{fill:#7ee787;font-weight:600}.title{fill:#79c0ff}"
)


TYPED, TITLE = ' class="typed"', ' class="title"'


class Line(NamedTuple):
    at_s: float
    text: str


def record(command: list[str]) -> list[Line]:
    """Lines of the command's stdout; its stderr goes to ours."""
    lines: list[Line] = []
    shown_s, last = 0.0, time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as running:  # noqa: S603 - what was typed
        for text in running.stdout or ():
            now = time.monotonic()
            shown_s, last = shown_s + min(now - last, LONGEST_PAUSE_S), now
            lines.append(Line(shown_s, text.rstrip("\n")[:COLUMNS]))
            sys.stdout.write(text)
            sys.stdout.flush()
    if running.returncode:
        raise SystemExit(f"record: {command[0]} ended with status {running.returncode}; nothing is drawn")
    return lines


def drawn(lines: list[Line]) -> str:
    """Each line appears at its time, by animations without a script; where none run, the first screen is shown."""
    whole_s = lines[-1].at_s + STAYS_S
    width = round(2 * MARGIN_PX + CHAR_PX * max(len(line.text) for line in lines))
    height = 2 * MARGIN_PX + LINE_PX * min(len(lines), SCREEN)
    rows = [row(line, MARGIN_PX + LINE_PX * (place + 0.75), whole_s) for place, line in enumerate(lines) if line.text]
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
        f'<clipPath id="screen"><rect y="{MARGIN_PX}" width="{width}" height="{height - 2 * MARGIN_PX}"/></clipPath>',
        f'<g clip-path="url(#screen)"><g>{moves(lines, whole_s)}',
        *rows,
        "</g></g>",
        "</svg>\n",
    ))  # fmt: skip


def moves(lines: list[Line], whole_s: float) -> str:
    """Scroll by one line for each line beyond the screen."""
    beyond = lines[SCREEN:]
    if not beyond:
        return ""
    values = ";".join(f"0 {-LINE_PX * moved}" for moved in range(len(beyond) + 1))
    times = ";".join(("0", *(f"{line.at_s / whole_s:.4f}" for line in beyond)))
    return (
        f'<animateTransform attributeName="transform" type="translate" values="{values}" keyTimes="{times}"'
        f' dur="{whole_s:.1f}s" calcMode="discrete" repeatCount="indefinite"/>'
    )


def row(line: Line, y: float, whole_s: float) -> str:
    of = TYPED if line.text.lstrip().startswith("$ ") else "" if line.text.startswith(" ") else TITLE
    appears = f"{line.at_s / whole_s:.4f}"
    animation = (
        f'<animate attributeName="opacity" values="0;1;1" keyTimes="0;{appears};1" dur="{whole_s:.1f}s"'
        ' calcMode="discrete" repeatCount="indefinite"/>'
    )
    return f'<text x="{MARGIN_PX}" y="{y:g}"{of}>{escape(line.text)}{animation}</text>'


def main() -> int:
    match sys.argv[1:]:
        case [out, "--", *command] if command:
            Path(out).write_text(drawn(record(command)))
            return 0
    sys.stderr.write("usage: tools/record.py OUT.svg -- COMMAND...\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
