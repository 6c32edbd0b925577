"""One identity's two ways of talking: the API itself, and kubectl."""

from __future__ import annotations

from dataclasses import dataclass

from rig.client.api import Api
from rig.client.kubectl import Kubectl


@dataclass(frozen=True)
class Speaker:
    """Who asks. What a test gets from a speaker goes on asking as that speaker."""

    api: Api
    kubectl: Kubectl
