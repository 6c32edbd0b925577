"""Checks and combines results for many nodes: cheap attribute checks for each, array work once for each decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from partage_plugins.answers import Codes, Fits, Flags, Scores, Slots
from partage_plugins.api.reasons import SAID, Reason
from partage_plugins.errors import PluginNonsense
from partage_plugins.registry.calls import Call

_BOOL: Final = np.dtype(np.bool_)
_UINT8: Final = np.dtype(np.uint8)
_FLOAT32: Final = np.dtype(np.float32)
_MAX_REASONS: Final = 256


class AllFit:
    """All plugins' filter results for many nodes: a node fits if it fits for every plugin.

    Reasons are computed only on request: most decisions never need them.
    """

    __slots__ = ("_verdicts", "fits")

    def __init__(self, fits: Flags, verdicts: Sequence[tuple[Call, Fits]]) -> None:
        self.fits = fits
        self._verdicts = verdicts

    def reasons(self) -> tuple[NDArray[np.uint16], tuple[Reason, ...]]:
        """For each node that does not fit, the first refusing plugin's reason, as an index into the table."""
        codes = np.zeros(self.fits.shape, dtype=np.uint16)
        fits = np.ones(self.fits.shape, dtype=np.bool_)
        table: list[Reason] = []
        for call, verdict in self._verdicts:
            newly = fits & ~verdict.fits
            refusing = _codes_of(call, verdict)[newly]
            if refusing.size and int(refusing.max()) >= len(verdict.reasons):
                raise nonsense(call, f"gave reason code {int(refusing.max())} of a table of {len(verdict.reasons)}")
            codes[newly] = refusing.astype(np.uint16) + np.uint16(len(table))
            fits &= verdict.fits
            table += [_typed(call, reason) for reason in verdict.reasons]
        return codes, tuple(table)


def check_fits(call: Call, answer: Fits, slots: Slots) -> None:
    """Refuses a value that is no valid result for these slots; a valid one costs a chain of cheap comparisons."""
    if type(answer) is not Fits:
        raise nonsense(call, f"returned {type(answer).__name__}; allowed: a Fits")
    fits, codes, reasons = answer
    shape = slots.shape
    if not (type(fits) is np.ndarray and fits.dtype is _BOOL and fits.shape == shape):
        _check_array(call, "fits", fits, shape, _BOOL)
    if not (callable(codes) or (type(codes) is np.ndarray and codes.dtype is _UINT8 and codes.shape == shape)):
        _check_array(call, "codes", codes, shape, _UINT8)
    if type(reasons) is not tuple or len(reasons) > _MAX_REASONS:
        raise nonsense(call, f"returned reasons {reasons!r:.80}; allowed: a tuple of at most {_MAX_REASONS}")


def check_scores(call: Call, answer: Scores, slots: Slots) -> None:
    """Refuses a value that is no array of scores for these slots; finiteness is checked on the sum."""
    _check_array(call, "scores", answer, slots.shape, _FLOAT32)


def combined_fits(verdicts: Sequence[tuple[Call, Fits]], slots: Slots) -> AllFit:
    """A node fits if it fits for every plugin."""
    together: Flags | None = None
    for _, verdict in verdicts:
        together = verdict.fits if together is None else together & verdict.fits
    return AllFit(np.ones(slots.shape, dtype=np.bool_) if together is None else together, verdicts)


def combined_scores(answers: Sequence[tuple[Call, Scores, float]], slots: Slots) -> Scores:
    """The weighted sum; the error for a non-finite score names its plugin."""
    total: Scores | None = None
    for _, scores, weight in answers:
        weighted: Scores = scores if weight == 1 else np.multiply(scores, weight, dtype=np.float32)
        total = weighted if total is None else np.add(total, weighted, dtype=np.float32)
    if total is None:
        return np.zeros(slots.shape, dtype=np.float32)
    if np.count_nonzero(np.isfinite(total)) != total.size:  # once for the sum, not once for each plugin
        _check_finite(answers)
    return total


def nonsense(call: Call, why: str) -> PluginNonsense:
    """The error for a value that its hook may not return."""
    return PluginNonsense(call.plugin, call.hook, why)


def _codes_of(call: Call, verdict: Fits) -> Codes:
    if not callable(verdict.codes):
        return verdict.codes
    codes: Codes = call.going_on(verdict.codes)()
    _check_array(call, "codes", codes, verdict.fits.shape, _UINT8)
    return codes


def _typed(call: Call, reason: object) -> Reason:
    """Converts a plugin's own text to a `Reason` of the generic code, on which no decision depends."""
    if isinstance(reason, str):
        return SAID.of(reason)
    if not isinstance(reason, Reason):
        raise nonsense(call, f"returned {type(reason).__name__} as a reason; allowed: a text or a Reason")
    try:
        str(reason)
    except (IndexError, KeyError, ValueError) as error:
        raise nonsense(call, f"returned a reason of which figures and words do not go together: {error}") from None
    return reason


def _check_array(call: Call, what: str, array: object, allowed: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    if type(array) is not np.ndarray or array.dtype != dtype or array.shape != allowed:
        shape = f"{getattr(array, 'dtype', type(array).__name__)}{getattr(array, 'shape', '')}"
        raise nonsense(call, f"returned {what} as {shape}; allowed: an array {dtype}{allowed}")


def _check_finite(answers: Sequence[tuple[Call, Scores, float]]) -> None:
    for call, scores, _ in answers:
        if not np.isfinite(scores).all():
            raise nonsense(call, "gave a score that is not finite")
