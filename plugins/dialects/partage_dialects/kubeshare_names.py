"""The variable that scripts of KubeShare's users read in containers: `POD_NAME`, which is `<namespace>/<pod>` there.

Of its other variables, the owner of cards sets those about cards, and those with which its library reached its manager
have no meaning here: nothing is preloaded by environment, and no manager listens on a port.
"""

from __future__ import annotations

from typing import Final

from partage_dialects import kubeshare_v1, kubeshare_v2
from partage_plugins.api.containers import Adjustment, Container
from partage_plugins.hooks import hookimpl

POD_NAME: Final = "POD_NAME"


class KubeShareNames:
    @hookimpl
    def partage_adjust(self, container: Container) -> Adjustment | None:
        """Users' keys decide only this variable, which is for their own use; a value that they set is kept."""
        if kubeshare_v1.LIMIT not in container.annotations and kubeshare_v2.LIMIT not in container.labels:
            return None
        if any(name == POD_NAME for name, _ in container.env):
            return None
        return Adjustment(env={POD_NAME: f"{container.pod.namespace}/{container.pod.name}"})
