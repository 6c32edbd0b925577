"""What scripts of KubeShare's users read in containers: `POD_NAME`, which is `<namespace>/<pod>` there.

Of its other variables the cards' are set by the owner of cards, and those by which its library reached its manager
have no meaning here: nothing is preloaded by environment, and no manager listens at a port.
"""

from __future__ import annotations

from typing import Final

from partage_dialects import kubeshare_v1, kubeshare_v2
from partage_plugins.hooks import hookimpl
from partage_plugins.vocabulary.containers import Adjustment, Container

POD_NAME: Final = "POD_NAME"


class KubeShareNames:
    @hookimpl
    def partage_adjust(self, container: Container) -> Adjustment | None:
        """Decides nothing by what users say but a variable for themselves; one that they set is theirs."""
        if kubeshare_v1.LIMIT not in container.annotations and kubeshare_v2.LIMIT not in container.labels:
            return None
        if any(name == POD_NAME for name, _ in container.env):
            return None
        return Adjustment(env={POD_NAME: f"{container.pod.namespace}/{container.pod.name}"})
