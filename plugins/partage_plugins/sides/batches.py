"""Checks and combines answers about many nodes: cheap attribute checks for each, array work once for each decision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from partage_plugins.errors import PluginNonsense
from partage_plugins.registry.calls import Call
from partage_plugins.vocabulary.answers import AllFit, Fits, Scores, Slots

_BOOL: Final = np.dtype(np.bool_)
_UINT8: Final = np.dtype(np.uint8)
_FLOAT32: Final = np.dtype(np.float32)
_MAX_REASONS: Final = 256


def check_fits(call: Call, answer: Fits, slots: Slots) -> None:
    """Refuses what is no verdict on these slots."""
    if type(answer) is not Fits:
        raise nonsense(call, f"returned {type(answer).__name__}; allowed: a Fits")
    _check_array(call, "fits", answer.fits, slots, _BOOL)
    _check_array(call, "codes", answer.codes, slots, _UINT8)
    if type(answer.reasons) is not tuple or len(answer.reasons) > _MAX_REASONS:
        raise nonsense(call, f"returned reasons {answer.reasons!r:.80}; allowed: a tuple of at most {_MAX_REASONS}")


def check_scores(call: Call, answer: Scores, slots: Slots) -> None:
    """Refuses what is no score of these slots; whether the numbers are finite is checked on their sum."""
    _check_array(call, "scores", answer, slots, _FLOAT32)


def combined_fits(verdicts: Sequence[tuple[Call, Fits]], slots: Slots) -> AllFit:
    """A node fits if every plugin says so; a node that does not has the first refusing plugin's reason."""
    if len(verdicts) == 1:
        _, only = verdicts[0]
        _check_reasons(verdicts)
        return AllFit(only.fits, only.codes.astype(np.uint16), only.reasons)
    fits = np.ones(slots.shape, dtype=np.bool_)
    codes = np.zeros(slots.shape, dtype=np.uint16)
    reasons: tuple[str, ...] = ()
    for _, verdict in verdicts:
        newly = np.greater(fits, verdict.fits)  # fitted so far, and this plugin refuses
        np.add(verdict.codes, len(reasons), out=codes, where=newly, dtype=np.uint16, casting="unsafe")
        np.logical_and(fits, verdict.fits, out=fits)
        reasons += verdict.reasons
    _check_reasons(verdicts)
    return AllFit(fits, codes, reasons)


def combined_scores(answers: Sequence[tuple[Call, Scores, float]], slots: Slots) -> Scores:
    """The weighted sum; names the plugin whose number is not finite."""
    total: Scores | None = None
    for _, scores, weight in answers:
        weighted: Scores = scores if weight == 1 else np.multiply(scores, weight, dtype=np.float32)
        total = weighted if total is None else np.add(total, weighted, dtype=np.float32)
    if total is None:
        return np.zeros(slots.shape, dtype=np.float32)
    if not math.isfinite(total.dot(total)):  # one pass in place of an isfinite for each plugin
        _check_finite(answers)
    return total


def nonsense(call: Call, why: str) -> PluginNonsense:
    """The error for an answer that its hook may not give."""
    return PluginNonsense(call.plugin, call.hook, why)


def _check_array(call: Call, what: str, array: object, slots: Slots, dtype: np.dtype[np.generic]) -> None:
    if type(array) is not np.ndarray or array.dtype is not dtype or array.shape != slots.shape:
        shape = f"{getattr(array, 'dtype', type(array).__name__)}{getattr(array, 'shape', '')}"
        raise nonsense(call, f"returned {what} as {shape}; allowed: an array {dtype}{slots.shape}")


def _check_reasons(verdicts: Sequence[tuple[Call, Fits]]) -> None:
    for call, verdict in verdicts:
        refused = verdict.codes[~verdict.fits]
        if refused.size and int(refused.max()) >= len(verdict.reasons):
            raise nonsense(call, f"gave reason code {int(refused.max())} of a table of {len(verdict.reasons)}")


def _check_finite(answers: Sequence[tuple[Call, Scores, float]]) -> None:
    for call, scores, _ in answers:
        if not np.isfinite(scores).all():
            raise nonsense(call, "gave a score that is not finite")
