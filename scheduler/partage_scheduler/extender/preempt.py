"""The preempt verb: victims for a pod's devices, beside those kube-scheduler chose for everything else. Pure.

kube-scheduler calls it only for nodes where its own rules found victims. Those stay chosen; if the devices need it,
more are added, as few and as cheap as in standalone mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from partage_plugins.api import NodeName, PodUid
from partage_scheduler.extender.messages import MetaPod, MetaVictims, PreemptionArgs
from partage_scheduler.objects import ApiPod
from partage_scheduler.preemption import VictimFinder


class PreemptVerb:
    def __init__(
        self, finder: VictimFinder, *, is_known: Callable[[NodeName], bool], is_helped: Callable[[PodUid], bool]
    ) -> None:
        """`is_helped` tells whether our own preemption already makes room for a pod."""
        self._finder, self._is_known, self._is_helped = finder, is_known, is_helped

    def victims(self, args: PreemptionArgs, now: float) -> Mapping[NodeName, MetaVictims]:
        """By node; nodes where preemption does not help are left out."""
        if self._is_helped(args.pod.uid):
            return {}
        asked = args.node_name_to_meta_victims or {}
        known = {node: victims for node, victims in asked.items() if self._is_known(node)}
        found = ((node, self._on(args.pod, node, victims, now)) for node, victims in known.items())
        return {node: victims for node, victims in found if victims is not None}

    def _on(self, pod: ApiPod, node: NodeName, victims: MetaVictims, now: float) -> MetaVictims | None:
        chosen = dict.fromkeys(each.uid for each in victims.pods)
        found = self._finder.victims_on(pod, node, now, chosen=chosen)
        if found is None:
            return None
        all_of_them = chosen | dict.fromkeys(each.uid for each in found.pods)
        pods = tuple(MetaPod(uid=uid) for uid in all_of_them)
        return MetaVictims(pods=pods, violations=max(found.violations, victims.violations))
