"""Prometheus' text format: metrics in, a page out. Pure.

It is our own: docs/decisions.md has what the usual library costs. A test reads our pages with that library's parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram"]
_IN_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABEL: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@dataclass(frozen=True)
class Sample:
    """One number; the suffix tells apart the several numbers of a histogram."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    suffix: Literal["", "_bucket", "_sum", "_count"] = ""


@dataclass(frozen=True)
class Family:
    """All samples of one metric."""

    name: str
    kind: Kind
    sentence: str
    samples: tuple[Sample, ...] = ()
    text: str = ""
    """Further samples, as whole lines of the page, where an object for each would take too long."""


def histogram(
    bounds: Iterable[float], counts: Iterable[int], total: float, labels: Mapping[str, str]
) -> tuple[Sample, ...]:
    """The samples of one histogram; `counts` has the count of each single bucket, the last one above all bounds."""
    below, samples = 0, list[Sample]()
    for bound, count in zip((*map(float, bounds), float("inf")), counts, strict=True):
        below += count
        samples.append(Sample(below, {**labels, "le": _number(bound)}, "_bucket"))
    return (*samples, Sample(below, labels, "_count"), Sample(total, labels, "_sum"))


def page(families: Iterable[Family]) -> bytes:
    return "".join(piece for family in families for piece in _pieces(family)).encode(errors="replace")


def escaped(value: str) -> str:
    """`value` with a label value's escapes; most values need none."""
    is_plain = '"' not in value and "\\" not in value and "\n" not in value
    return value if is_plain else value.translate(_IN_LABEL)


def _pieces(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.sentence.translate(_IN_HELP)}\n# TYPE {family.name} {family.kind}\n"
    for sample in family.samples:
        pairs = ",".join(f'{name}="{escaped(value)}"' for name, value in sorted(sample.labels.items()))
        yield f"{family.name}{sample.suffix}{f'{{{pairs}}}' if pairs else ''} {_number(sample.value)}\n"
    yield family.text


def _number(value: float) -> str:
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(text := repr(float(value)), text)
