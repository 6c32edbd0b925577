"""What an API server answered, by its own metrics."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from typing import Final, NamedTuple

from rig.control.plane import ControlPlane

_REQUESTS: Final = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_WRITES: Final = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_TOO_MANY: Final = "429"


class Answers(NamedTuple):
    throttled: int
    writes: Counter[str]


def answers(control: ControlPlane) -> Answers:
    with closing(control.api(control.identities.admin)) as api:
        text = api.text("/metrics")
    throttled, writes = 0, Counter[str]()
    for said, value in _REQUESTS.findall(text):
        labels = dict(_LABEL.findall(said))
        throttled += int(float(value)) if labels["code"] == _TOO_MANY else 0
        if labels["verb"] in _WRITES:
            writes[labels["resource"]] += int(float(value))
    return Answers(throttled, writes)
