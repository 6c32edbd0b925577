"""Reads a trace: one CSV file of nodes, one of pods. An error names file, line, column, and the allowed values.

Nodes: `sn, cpu_milli, memory_mib, gpu, model`. Pods: `name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec`, where
the optional `gpu_spec` lists acceptable models as `A|B`. Other columns are ignored; this is the format of the public
cluster traces for GPU sharing.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from partage_cli.simulation.workloads import WHOLE_MILLI, FleetNode, Workload, node_of, request_of
from partage_plugins.api import GpuRequest, PodRequest, Resources
from partage_plugins.errors import DecodeError

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_MIB: Final = 1 << 20
_LARGEST: Final = 1 << 40
_MOST_CARDS: Final = 64
_LONGEST_NAME: Final = 100
T = TypeVar("T")


class Row:
    """One line of a file; reading a malformed cell raises an error that locates it."""

    def __init__(self, file: Path, line: int, cells: dict[str, str]) -> None:
        self._file, self._line, self._cells = file, line, cells

    def whole(self, column: str, *, least: int = 0, most: int = _LARGEST) -> int:
        """A whole number within bounds."""
        text = self.text(column)
        if not (text.isascii() and text.isdigit() and len(text) < len(str(_LARGEST)) and least <= int(text) <= most):
            raise self.wrong(column, f"a whole number from {least} to {most}")
        return int(text)

    def text(self, column: str) -> str:
        """A cell's text; empty if the line is too short or the file has no such column."""
        return (self._cells.get(column) or "").strip()

    def name(self, column: str) -> str:
        """A cell that contains a name."""
        text = self.text(column)
        if not (text and text.isprintable() and len(text) <= _LONGEST_NAME):
            raise self.wrong(column, f"1 to {_LONGEST_NAME} printable characters")
        return text

    def wrong(self, column: str, allowed: str) -> DecodeError:
        path = f"line {self._line}, column {column}"
        return DecodeError(str(self._file), path=path, value=repr(self.text(column)), allowed=allowed)


def read_trace(nodes: Path, pods: Path) -> Workload:
    """The workload of two files."""
    return Workload(
        origin=f"{pods.name} on {nodes.name}",
        nodes=_read_nodes(nodes),
        requests=tuple(_rows(pods, POD_COLUMNS, _request)),
    )


def _read_nodes(file: Path) -> tuple[FleetNode, ...]:
    seen: set[str] = set()

    def node(row: Row) -> FleetNode:
        name = row.name("sn")
        if name in seen:
            raise row.wrong("sn", "each node once")
        seen.add(name)
        cards = row.whole("gpu", most=_MOST_CARDS)
        models = [row.name("model")] * cards if cards else []
        return node_of(len(seen), name, _room(row), models)

    return tuple(_rows(file, NODE_COLUMNS, node))


def _request(row: Row) -> PodRequest:
    count = row.whole("num_gpu", most=_MOST_CARDS)
    if not count:
        return request_of(_room(row), None)
    share = row.whole("gpu_milli", least=1, most=WHOLE_MILLI)
    if count > 1 and share != WHOLE_MILLI:
        raise row.wrong("gpu_milli", f"{WHOLE_MILLI} where num_gpu is more than 1")
    models = tuple(model for model in row.text("gpu_spec").split("|") if model)
    return request_of(_room(row), GpuRequest(count=count, share_milli=share, models=tuple(dict.fromkeys(models))))


def _room(row: Row) -> Resources:
    return Resources(cpu_milli=row.whole("cpu_milli"), memory_bytes=row.whole("memory_mib") * _MIB)


def _rows(file: Path, columns: tuple[str, ...], read: Callable[[Row], T]) -> Iterator[T]:
    """Parse each line; a file without lines is an error, too."""
    empty = True
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        try:
            _check_header(file, reader.fieldnames or (), columns)
            for cells in reader:
                empty = False
                yield read(Row(file, reader.line_num, cells))
        except (csv.Error, UnicodeDecodeError) as error:
            raise DecodeError(
                str(file), path=f"line {reader.line_num + 1}", value=str(error), allowed="CSV in UTF-8"
            ) from None
    if empty:
        raise DecodeError(str(file), path="line 2", value="missing", allowed="a line for each node or pod")


def _check_header(file: Path, header: object, columns: tuple[str, ...]) -> None:
    names = list(header) if isinstance(header, list | tuple) else []
    missing = [column for column in columns if column not in names]
    if missing:
        allowed = ", ".join(columns)
        raise DecodeError(str(file), path="line 1", value=f"without column {', '.join(missing)}", allowed=allowed)
