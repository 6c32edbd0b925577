"""What the real API server does to pods beyond storing them: bindings, conditions, graceful deletion. Pure."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

from support.fake_answers import No, Object, merged


def bound(path: str, pod: Object, binding: Object) -> Object:
    """The pod after a binding; raises if it can't be bound. All in one step, as in the real one."""
    _require_bindable(path, pod, binding)
    left: Object = merged(pod, {"metadata": {"annotations": binding.get("metadata", {}).get("annotations", {})}})
    left["spec"] = {**left["spec"], "nodeName": binding["target"]["name"]}
    status = {key: value for key, value in left.get("status", {}).items() if key != "nominatedNodeName"}
    scheduled = {"type": "PodScheduled", "status": "True"}
    left["status"] = {**status, "conditions": _by_type(status.get("conditions", []), [scheduled])}
    return left


def with_status(pod: Object, patch: Object, *, strategic: bool) -> Object:
    """The pod with another status; a strategic patch merges conditions by type."""
    new: Object = merged(pod, {"status": patch.get("status", {})})
    if strategic and "conditions" in patch.get("status", {}):
        old = pod.get("status", {}).get("conditions", [])
        new["status"]["conditions"] = _by_type(old, patch["status"]["conditions"])
    return new


def require_uid(pod: Object, options: Object) -> None:
    """Check the uid precondition of a deletion."""
    meta, wanted = pod["metadata"], options.get("preconditions", {}).get("uid")
    if wanted and wanted != meta["uid"]:
        raise _no(
            meta["name"], f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {meta['uid']}"
        )


def going(pod: Object) -> Object:
    """The pod with a deletionTimestamp, still waiting for its containers to end."""
    until = datetime.now(UTC) + timedelta(seconds=30)
    left: Object = merged(pod, {"metadata": {"deletionTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ")}})
    return left


def _require_bindable(path: str, pod: Object, binding: Object) -> None:
    name, meta = path.rpartition("/")[2], pod["metadata"]
    wanted = binding.get("metadata", {}).get("uid")
    if wanted and wanted != meta["uid"]:
        raise _no(name, f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {meta['uid']}")
    if meta.get("deletionTimestamp"):
        raise _no(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if on := pod.setdefault("spec", {}).get("nodeName"):
        raise _no(name, f'pod {name} is already assigned to node "{on}"')
    if pod["spec"].get("schedulingGates"):
        raise _no(name, f"pod {name} has non-empty .spec.schedulingGates")


def _no(name: str, why: str) -> No:
    return No(409, "Conflict", f'Operation cannot be fulfilled on pods/binding "{name}": {why}')


def _by_type(old: list[Any], new: list[Any]) -> list[Any]:
    conditions = {each["type"]: each for each in copy.deepcopy(old)}
    for each in new:
        conditions[each["type"]] = {**conditions.get(each["type"], {}), **each}
    return list(conditions.values())
