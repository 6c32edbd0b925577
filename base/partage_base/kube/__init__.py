"""Client of the API server: credentials, plain calls, lists and watches. Typed, on asyncio or uvloop.

Read in this order: `access` (address and credentials, renewed as they rotate), `server` (plain calls, each sent once
and bounded in time and size), `informer` (a list kept current by a watch), `lists` (how that list is first read:
streamed, or in pages). `paths` and `objects` are URLs and types; `errors` has the expected errors, and `backoff` how
long to wait after which. `event_writer` writes events for people.

    access = await asyncio.to_thread(Access.find, settings.kubeconfig)
    async with ApiServer(access, user_agent="partage-advertiser/0.1") as server:
        node = await server.get(node_path("n1"), Node)

Below these: `configuration` reads kubeconfigs, which `kubeconfig` and `proxies` (both pure) interpret, and calls their
plugins by `exec_plugin`. `transport` alone speaks HTTP: calls by `connections` and `http1` (pure), watches by aiohttp.
`answers`, `pages`, `events` and `undecodable` decode responses and are pure.

Nothing here decides what is written or when.
"""

from partage_base.kube.access import Access
from partage_base.kube.backoff import Backoff
from partage_base.kube.errors import (
    BadAccess,
    BadName,
    Conflict,
    Gone,
    KubeError,
    MalformedResponse,
    NotAllowed,
    NotFound,
    ServerFailed,
    StatusError,
    Throttled,
    TooLarge,
    Unreachable,
)
from partage_base.kube.event_writer import EventWriter, Occurrence
from partage_base.kube.events import Bookmark, Changed, Deleted, Event
from partage_base.kube.informer import Listed, Lost, Seen, follow
from partage_base.kube.objects import Lease, LeaseSpec, Meta, Node, ObjectEvent, ObjectReference, micro_time
from partage_base.kube.paths import (
    NOT_ENDED,
    binding_path,
    config_maps_path,
    endpoint_slice_path,
    events_path,
    lease_path,
    leases_path,
    node_path,
    nodes_path,
    pod_log_path,
    pod_page_path,
    pod_path,
    pod_status_path,
    pods_path,
    resource_claim_path,
    resource_claims_path,
    resource_slice_path,
    resource_slices_path,
    secrets_path,
    token_path,
)
from partage_base.kube.server import ApiServer, Listing, PatchKind
from partage_base.kube.undecodable import Undecodable

__all__ = [
    "NOT_ENDED",
    "Access",
    "ApiServer",
    "Backoff",
    "BadAccess",
    "BadName",
    "Bookmark",
    "Changed",
    "Conflict",
    "Deleted",
    "Event",
    "EventWriter",
    "Gone",
    "KubeError",
    "Lease",
    "LeaseSpec",
    "Listed",
    "Listing",
    "Lost",
    "MalformedResponse",
    "Meta",
    "Node",
    "NotAllowed",
    "NotFound",
    "ObjectEvent",
    "ObjectReference",
    "Occurrence",
    "PatchKind",
    "Seen",
    "ServerFailed",
    "StatusError",
    "Throttled",
    "TooLarge",
    "Undecodable",
    "Unreachable",
    "binding_path",
    "config_maps_path",
    "endpoint_slice_path",
    "events_path",
    "follow",
    "lease_path",
    "leases_path",
    "micro_time",
    "node_path",
    "nodes_path",
    "pod_log_path",
    "pod_page_path",
    "pod_path",
    "pod_status_path",
    "pods_path",
    "resource_claim_path",
    "resource_claims_path",
    "resource_slice_path",
    "resource_slices_path",
    "secrets_path",
    "token_path",
]
