"""A pod that shows that a new kubelet can start pods: it only waits, in the runtime's own pause image.

If kubelet supports static pods it is one, which needs only kubelet and the runtime. Else it is created in the API
server, with credentials that may create pods, which kubelet's own may not. It does not use the network.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

import msgspec

from partage_base.cri import CriError, RuntimeClient, UnaryClient
from partage_base.files import write_whole
from partage_base.kube import ApiServer
from partage_base.kube.errors import KubeError, NotFound
from partage_base.kube.paths import pod_path, pods_path
from partage_cli.installation.errors import UnfitNode
from partage_cli.installation.host import Host
from partage_cli.installation.inspection import Site
from partage_cli.installation.nodes import EVER, own_node

_NAME: Final = "partage-canary"
_NAMESPACE: Final = "kube-system"
_ASKED_S: Final = 10.0
"""For a runtime's lists, which it has in memory."""


def static_file(host: Host, site: Site) -> str:
    """The path of its static pod; empty if kubelet has none."""
    return str(host.path(site.static_pods) / f"{_NAME}.json") if site.static_pods else ""


def remove_static(host: Host, site: Site) -> None:
    """Removes the file; kubelet ends the pod soon after, and nothing waits for that."""
    if path := static_file(host, site):
        Path(path).unlink(missing_ok=True)


class Canary:
    """One try; its container has a unique name, so that an older one is not mistaken for it."""

    def __init__(self, host: Host, site: Site, server: ApiServer | None) -> None:
        """`server` has credentials that may create pods; None if kubelet has static pods."""
        self._host, self._site, self._server = host, site, server
        self._container = f"{_NAME}-{secrets.token_hex(4)}"
        self._made = False

    async def start(self, client: UnaryClient) -> None:
        """Creates the pod on the first call; raises `UnfitNode`, `CriError` and `KubeError`."""
        if self._made:
            return
        pod = self._pod(await pause_image(client))
        if path := static_file(self._host, self._site):
            write_whole(path, msgspec.json.encode(pod), mode=0o600)
        elif self._server is not None:
            await self._server.create(pods_path(_NAMESPACE), pod, msgspec.Raw)
        self._made = True

    async def runs(self, client: UnaryClient) -> bool:
        containers = await RuntimeClient(client).containers()
        return any(each.name == self._container and each.running for each in containers)

    async def remove(self) -> None:
        remove_static(self._host, self._site)
        if not self._site.static_pods and self._server is not None and self._made:
            try:
                await self._server.delete(pod_path(_NAMESPACE, self._container), grace_s=0)
            except NotFound:
                return

    def _pod(self, image: str) -> object:
        """Like every static pod it is critical; it requests no resources, so that no other pod is evicted for it."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": _NAME if self._site.static_pods else self._container,
                "namespace": _NAMESPACE,
                "labels": {"app.kubernetes.io/name": _NAME, "app.kubernetes.io/part-of": "partage"},
            },
            "spec": {
                "nodeName": self._site.node,
                "hostNetwork": True,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "terminationGracePeriodSeconds": 0,
                "restartPolicy": "Never",
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": self._container, "image": image, "imagePullPolicy": "IfNotPresent"}],
            },
        }


async def pause_image(client: UnaryClient) -> str:
    """The image that the runtime pins for sandboxes; older runtimes pin none, so the image's usual name is used.

    Raises `UnfitNode` and `CriError`.
    """
    images = await RuntimeClient(client, deadline_s=_ASKED_S).images()
    pinned = [each for each in images if each.is_pinned]
    usual = [each for each in images if any("/pause:" in name for name in each.names)]
    names = [name for each in (*pinned, *usual) for name in each.names]
    if not names:
        raise UnfitNode(
            "no pod has run on this node yet, so its runtime has no image of a sandbox to try it with: run one"
        )
    return names[0]


async def require_room(host: Host, site: Site) -> None:
    """Raises `UnfitNode` unless the node is ready, has an image for the canary, and has room for one more pod.

    Without room kubelet would end another pod for ours.
    """
    try:
        node = await own_node(host, site.kubeconfig, site.node)
    except KubeError as error:
        raise UnfitNode(f"kubelet's own credentials do not reach the API server: {error}") from None
    if why := node.why_not_ready(EVER):
        raise UnfitNode(f"{why}; mend that first")
    client = UnaryClient(host.path(site.runtime))
    try:
        await pause_image(client)
        sandboxes = await RuntimeClient(client, deadline_s=_ASKED_S).sandboxes()
    except CriError as error:
        raise UnfitNode(f"the container runtime does not answer: {error}") from None
    finally:
        client.close()
    pods = sum(each.is_ready for each in sandboxes)
    if pods >= node.most_pods:
        raise UnfitNode(
            f"the node has {pods} of {node.most_pods} pods, and one more is needed to try it; move one away"
        )
