"""The largest pods that a real API server accepts are followed, streamed and in pages, beside all others."""

from __future__ import annotations

from contextlib import aclosing

from partage_base.kube import Access, ApiServer, Backoff, Changed, Listed, Node, follow, pods_path
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.control.plane import ControlPlane
from rig.identity.people import TEAM

LARGEST = 1_450_000
"""Number of `<`, each of which the API server writes as six bytes; etcd takes 1.5 MiB by default."""
COUNT = 3


async def test_pods_of_the_largest_size_are_followed_streamed_and_in_pages(
    bare: Cluster, control: ControlPlane
) -> None:
    for number in range(COUNT):
        body = a_pod(f"large-{number}")
        body["spec"]["containers"][0]["args"] = ["<" * LARGEST]
        bare.pods.create(TEAM, body)
        for place in range(20):
            bare.pods.create(TEAM, a_pod(f"m-{number}-{place}"))
    access = Access.find(control.identities.kubeconfig(control.identities.admin, control.server))
    backoff = Backoff(first_s=0.1, most_s=1, random=lambda: 0.5)
    async with ApiServer(access, user_agent="partage-test") as server:
        async with aclosing(follow(server, pods_path(TEAM), Node, backoff=backoff)) as seen:
            listed = await anext(seen)
            assert isinstance(listed, Listed)
            assert (len(listed.items), listed.undecodable) == (COUNT * 21, ())
            change = {"metadata": {"annotations": {"a": "b"}}}
            await server.patch(f"{pods_path(TEAM)}/large-1", change, dict[str, object])
            changed = await anext(seen)
            assert isinstance(changed, Changed)
            assert changed.item.metadata.name == "large-1"
        in_pages = await server.list(pods_path(TEAM), Node, limit=1000)
        assert (len(in_pages.items), in_pages.undecodable) == (COUNT * 21, ())
        names = sorted(each.metadata.name for each in in_pages.items)
        assert names == sorted(each.metadata.name for each in listed.items)
