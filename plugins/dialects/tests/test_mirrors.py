"""What a pod was given, as the systems write it whose words it used."""

from __future__ import annotations

import json

from partage_dialects.hami import HamiDialect
from partage_dialects.kubegpu import KubeGpu
from partage_dialects.kubeshare_v2 import KubeShareV2
from partage_dialects.vgpu import VgpuSettings
from partage_dialects.volcano import VolcanoDialect
from partage_plugins.api import Allocation, ContainerName, Inventory, NodeName, PodUid
from partage_plugins.api.gpu import GPU, MIB, Card, GpuGrant, GpuPart
from partage_plugins.api.names import CardId
from partage_plugins.api.pods import Pod, PodContainer
from partage_plugins.testing.examples import pod

CARDS = (CardId("GPU-a"), CardId("GPU-b"))


def grant(card: CardId, mib: int, share: int) -> GpuGrant:
    return GpuGrant(card=card, share_milli=share, limit_milli=1000, memory_bytes=mib * MIB)


def given(*grants: GpuGrant, container: str = "main") -> Allocation:
    containers = {ContainerName(container): {GPU.name: grants}}
    return Allocation(gen=1, pod=PodUid("uid-1"), node=NodeName("n1"), containers=containers)


def inventory() -> Inventory:
    cards = tuple(
        Card(
            id=card,
            index=index,
            model="NVIDIA H100",
            memory_bytes=80 << 30,
            compute_capability="9.0",
            pci=f"0000:0{index}:00.0",
            pool="shared",
        )
        for index, card in enumerate(CARDS)
    )
    return Inventory(kinds={GPU.name: GpuPart(driver="580.1", cuda="13.0", cards=cards)})


def several(first: str, limits: dict[str, str]) -> Pod:
    """An init container, one that asks for nothing, and one that asks."""
    plain = pod(limits)
    init = PodContainer(name=ContainerName(first), role="init")
    return Pod(ref=plain.ref, containers=(init, PodContainer(name=ContainerName("beside")), *plain.containers))


def test_volcano_lists_containers_with_cards_alone() -> None:
    asking = several("init", {"volcano.sh/vgpu-number": "2"})
    said = VolcanoDialect(VgpuSettings()).partage_mirror(
        asking, given(grant(CARDS[0], 512, 300), grant(CARDS[1], 512, 0))
    )
    assert said == {
        "volcano.sh/vgpu-ids-new": "GPU-a,NVIDIA,512,30:GPU-b,NVIDIA,512,0:",
        "volcano.sh/vgpu-node": "n1",
        "volcano.sh/bind-phase": "success",
    }
    assert VolcanoDialect(VgpuSettings()).partage_mirror(pod(), given()) is None


def test_hami_lists_each_container_init_containers_first() -> None:
    asking = several("init", {"nvidia.com/gpu": "1"})
    said = HamiDialect(VgpuSettings()).partage_mirror(asking, given(grant(CARDS[0], 1024, 1000)))
    assert said == {
        "hami.io/vgpu-devices-allocated": ";;GPU-a,NVIDIA,1024,100:",
        "hami.io/vgpu-node": "n1",
        "hami.io/bind-phase": "success",
    }
    assert HamiDialect(VgpuSettings()).partage_mirror(pod(), given()) is None


def test_kubeshare_says_card_model_and_bytes() -> None:
    asking = Pod(ref=pod().ref, labels={"sharedgpu/gpu_limit": "1.0"}, containers=pod().containers)
    assert KubeShareV2().partage_mirror(asking, given(grant(CARDS[1], 2, 500)), inventory()) == {
        "sharedgpu/gpu_uuid": "GPU-b",
        "sharedgpu/gpu_model": "NVIDIA H100",
        "sharedgpu/gpu_mem": str(2 * MIB),
    }
    assert KubeShareV2().partage_mirror(pod(), given(), inventory()) is None


def told_by_kubegpu(said: dict[str, object], *grants: GpuGrant) -> dict[str, object]:
    annotations = {"pod.alpha/DeviceInformation": json.dumps(said)}
    asking = Pod(ref=pod().ref, annotations=annotations, containers=pod().containers)
    told = KubeGpu().partage_mirror(asking, given(*grants))
    assert told is not None
    answer = Pod(ref=pod().ref, annotations=told, containers=pod().containers)
    assert KubeGpu().partage_requests(answer) == KubeGpu().partage_requests(asking)
    read: dict[str, object] = json.loads(told["pod.alpha/DeviceInformation"])
    return read


def test_kubegpu_is_answered_in_its_own_annotation_which_asks_for_the_same_as_before() -> None:
    main = {"requests": {"alpha.gpu/numgpu": 2}, "scorer": {"alpha.gpu/numgpu": 1}}
    told = told_by_kubegpu({"runningcontainer": {"main": main}}, grant(CARDS[0], 512, 1000), grant(CARDS[1], 512, 1000))
    paths = {
        "alpha/grpresource/gpu/0/cards": "alpha/grpresource/gpu/GPU-a/cards",
        "alpha/grpresource/gpu/1/cards": "alpha/grpresource/gpu/GPU-b/cards",
    }
    assert told == {"nodename": "n1", "runningcontainer": {"main": {**main, "allocatefrom": paths}}}
    assert KubeGpu().partage_mirror(pod(), given()) is None


def test_kubegpu_is_answered_by_the_paths_that_were_asked_for() -> None:
    asked = "alpha/grpresource/gpugrp0/A/gpu/x/cards"
    main = {"requests": {asked: 1}, "allocatefrom": {"made": "up"}}
    told = told_by_kubegpu({"runningcontainer": {"main": main}}, grant(CARDS[0], 512, 1000))
    paths = {asked: "alpha/grpresource/gpu/GPU-a/cards"}
    assert told["runningcontainer"] == {"main": {"requests": {asked: 1}, "allocatefrom": paths}}
