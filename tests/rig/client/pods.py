"""Pods for tests: create one, wait, inspect it, run commands in it, delete it.

web = cluster.pods.create("team-a", a_pod("web", image=BUSYBOX, command=["sleep", "600"]))
web.wait_running()
assert web.exec("hostname").strip() == "web"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Self

from rig.client import pod_status
from rig.client.api import Api
from rig.client.kubectl import Ran, Speaker
from rig.client.resources import EVENTS, PODS, Json
from rig.client.wait import PATIENCE_S, until
from rig.errors import NeverHappened, Refused


@dataclass(frozen=True)
class ObjectEvent:
    """An Event about an object, with its count."""

    type: str
    reason: str
    message: str
    reporter: str
    count: int

    def __str__(self) -> str:
        return f"{self.type} {self.reason} ({self.reporter}): {self.message}"


def events_of(api: Api, subject: Json) -> list[ObjectEvent]:
    """Events about exactly this object, not about an earlier one of its name; oldest first."""
    metadata = subject["metadata"]
    query = {"fieldSelector": f"involvedObject.uid={metadata['uid']}"}
    found = api.list(EVENTS.at(metadata.get("namespace")), query)
    return [_event(each) for each in sorted(found, key=_last_seen)]


def _last_seen(event: Json) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])


def _event(event: Json) -> ObjectEvent:
    series = event.get("series") or {}
    reporter = event.get("reportingComponent") or (event.get("source") or {}).get("component", "")
    return ObjectEvent(
        type=event.get("type", ""),
        reason=event.get("reason", ""),
        message=event.get("message", ""),
        reporter=reporter,
        count=series.get("count") or event.get("count") or 1,
    )


_EVENTS_TOLD: Final = 4


class Pod:
    """A pod that was created; `object` is its last known state."""

    def __init__(self, speaker: Speaker, pod: Json) -> None:
        self._speaker = speaker
        self.object = pod

    @property
    def namespace(self) -> str:
        return str(self.object["metadata"]["namespace"])

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Distinguishes it from all other pods of its name."""
        return str(self.object["metadata"]["uid"])

    @property
    def annotations(self) -> dict[str, str]:
        return dict(self.object["metadata"].get("annotations", {}))

    @property
    def node(self) -> str | None:
        """The node that it is bound to, as last seen."""
        node: str | None = self.object["spec"].get("nodeName")
        return node

    @property
    def phase(self) -> str:
        return pod_status.phase(self.object)

    def path(self, sub: str | None = None) -> str:
        return PODS.at(self.namespace, self.name, sub)

    def refresh(self) -> Json:
        """Read its current state. A new pod of the same name is another pod, so this one counts as not found."""
        found = self._speaker.api.get(self.path())
        if found["metadata"]["uid"] != self.uid:
            raise Refused(HTTPStatus.NOT_FOUND, "NotFound", f"pod {self.name} is gone; another has its name")
        self.object = found
        return found

    def container(self, name: str = "main") -> Json:
        """The status of a container as last seen; empty before kubelet reports one."""
        return pod_status.containers(self.object).get(name, {})

    def condition(self, name: str) -> Json:
        """A condition as last seen; empty if there is none."""
        return pod_status.condition(self.object, name)

    def events(self) -> list[ObjectEvent]:
        return events_of(self._speaker.api, self.object)

    def logs(self, container: str | None = None, *, previous: bool = False) -> str:
        """A container's log; `previous` is that of its last instance."""
        query = {"previous": str(previous).lower(), **({"container": container} if container else {})}
        return self._speaker.api.text(self.path("log"), query)

    def wait_written(self, text: str) -> None:
        """Wait for this output: a running pod may not have written it yet."""
        self.wait(f"writes {text!r}", lambda _: None if (seen := self.logs()) == text else f"it wrote {seen!r}")

    def exec(self, *command: str, container: str = "main") -> str:
        """Output of a command in a container; raises `RigError` if it fails."""
        return self._speaker.kubectl.run(*self._exec(command, container))

    def tried(self, *command: str, container: str = "main") -> Ran:
        return self._speaker.kubectl.tried(*self._exec(command, container))

    def annotate(self, annotations: Mapping[str, str | None]) -> None:
        """Change annotations by an ordinary request; None removes one."""
        self.object = self._speaker.api.patch(self.path(), {"metadata": {"annotations": dict(annotations)}})

    def wait(self, what: str, why_not: Callable[[Json], str | None], within_s: float = PATIENCE_S) -> None:
        """Wait until `why_not` returns None; a failure includes the pod's state and last events."""
        try:
            until(f"pod {self.namespace}/{self.name} {what}", lambda: why_not(self.refresh()), within_s)
        except NeverHappened as never:
            raise NeverHappened("\n  ".join([str(never), *self._last_events()])) from None

    def wait_bound(self, within_s: float = PATIENCE_S) -> str:
        """Wait until a scheduler has bound it; returns the node."""
        self.wait("is bound", lambda pod: None if "nodeName" in pod["spec"] else pod_status.summary(pod), within_s)
        return str(self.node)

    def wait_why(self, words: str, within_s: float = PATIENCE_S) -> str:
        """Wait until the condition of a pending pod contains these words; returns the whole message."""

        def why_not(_: Json) -> str | None:
            said = str(self.condition("PodScheduled").get("message", ""))
            return None if words in said else f"the condition says {said!r}"

        self.wait(f"says {words!r}", why_not, within_s)
        return str(self.condition("PodScheduled")["message"])

    def wait_event(self, words: str) -> None:
        """Wait until one of its Events has these words."""

        def why_not(_: Json) -> str | None:
            return None if any(words in str(event) for event in self.events()) else "none has"

        self.wait(f"has an event with {words!r}", why_not)

    def wait_running(self, within_s: float = PATIENCE_S) -> Self:
        """Wait until all its containers run; fails at once if the pod has terminated. Returns the pod."""
        self.wait("runs", _why_not_running, within_s)
        return self

    def wait_succeeded(self, within_s: float = PATIENCE_S) -> None:
        """Wait until all its containers have succeeded."""
        self.wait("succeeds", lambda pod: _why_not_ended(pod, "Succeeded"), within_s)

    def wait_failed(self, within_s: float = PATIENCE_S) -> None:
        self.wait("fails", lambda pod: _why_not_ended(pod, "Failed"), within_s)

    def wait_waiting(self, reason: str, container: str = "main", within_s: float = PATIENCE_S) -> str:
        """Wait until a container can't start for this reason, such as CreateContainerError; returns the message."""
        self.wait(f"waits for {reason}", lambda pod: _why_not_waiting(pod, container, reason), within_s)
        return str(pod_status.state(self.container(container))[1].get("message", ""))

    def delete(self, grace_s: int | None = None) -> None:
        """Request the deletion of exactly this pod, not of a later one with its name."""
        grace = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        self._speaker.api.delete(self.path(), {"preconditions": {"uid": self.uid}, **grace})

    def wait_gone(self, within_s: float = PATIENCE_S) -> None:
        """Wait until the API server has removed it."""
        until(f"pod {self.namespace}/{self.name} is gone", self._why_not_gone, within_s)

    def delete_and_wait(self, grace_s: int | None = None, within_s: float = PATIENCE_S) -> None:
        self.delete_if_there(grace_s)
        self.wait_gone(within_s)

    def delete_if_there(self, grace_s: int | None = None) -> None:
        """Request its deletion, unless it is already gone, even if another pod has its name."""
        try:
            self.delete(grace_s)
        except Refused as refused:
            if refused.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise

    def _exec(self, command: tuple[str, ...], container: str) -> tuple[str, ...]:
        return ("exec", "-n", self.namespace, self.name, "-c", container, "--", *command)

    def _last_events(self) -> list[str]:
        return [str(event) for event in self.events()[-_EVENTS_TOLD:]]

    def _why_not_gone(self) -> str | None:
        try:
            return pod_status.summary(self.refresh())
        except Refused as refused:
            if refused.status == HTTPStatus.NOT_FOUND:
                return None
            raise


class Pods:
    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self.made: list[Pod] = []

    def create(self, namespace: str, manifest: Json) -> Pod:
        """Create a pod; returns it as accepted by the API server."""
        pod = Pod(self._speaker, self._speaker.api.create(PODS.at(namespace), manifest))
        self.made.append(pod)
        return pod

    def get(self, namespace: str, name: str) -> Pod:
        return Pod(self._speaker, self._speaker.api.get(PODS.at(namespace, name)))

    def end_made(self, grace_s: int | None = None) -> list[Pod]:
        """Request the deletion of every pod that was created here, and return them."""
        made, self.made = self.made, []
        for pod in made:
            pod.delete_if_there(grace_s)
        return made

    def delete_made(self, grace_s: int | None = None) -> None:
        """Delete every pod that was created here and wait; without a kubelet, use a grace of 0."""
        for pod in self.end_made(grace_s):
            pod.wait_gone()

    def list(self, namespace: str | None = None, selector: str = "") -> list[Pod]:
        """Pods of a namespace, or all, with these labels."""
        found = self._speaker.api.list(PODS.at(namespace), {"labelSelector": selector})
        return [Pod(self._speaker, each) for each in found]


def _why_not_running(pod: Json) -> str | None:
    if pod_status.phase(pod) in pod_status.ENDED:
        raise NeverHappened(f"it has ended already: {pod_status.summary(pod)}")
    wanted = {each["name"] for each in pod["spec"]["containers"]}
    running = {name for name, each in pod_status.containers(pod).items() if pod_status.state(each)[0] == "running"}
    return None if wanted <= running else pod_status.summary(pod)


def _why_not_ended(pod: Json, wanted: str) -> str | None:
    phase = pod_status.phase(pod)
    if phase in pod_status.ENDED and phase != wanted:
        raise NeverHappened(f"it has ended already: {pod_status.summary(pod)}")
    return None if phase == wanted else pod_status.summary(pod)


def _why_not_waiting(pod: Json, container: str, reason: str) -> str | None:
    name, details = pod_status.state(pod_status.containers(pod).get(container, {}))
    return None if name == "waiting" and details.get("reason") == reason else pod_status.summary(pod)
