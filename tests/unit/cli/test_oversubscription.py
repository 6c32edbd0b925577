"""Other systems' memory oversubscription is read from their ConfigMaps and becomes our setting."""

from __future__ import annotations

import json

import pytest

from partage_cli.translate.documents import Outcome, to_native

WHERE = "of the advertiser there, for pods that say partage.dev/movable"
BY_NODE = "ConfigMap device-config, config.json: deviceMemoryScaling 1.8 of node gpu-1 is PARTAGE_GPU_MEMORY_BEYOND=80%"


def told(data: dict[str, str]) -> Outcome:
    document = {"kind": "ConfigMap", "metadata": {"name": "device-config"}, "data": data}
    return to_native(document, lambda _: None, lambda _, *, asks: None, scheduler="partage-scheduler")  # type: ignore[arg-type, return-value]


def test_each_card_and_each_node_has_its_own() -> None:
    """The formats of HAMi's chart and Volcano's device plugin: YAML for all, JSON by node."""
    nodes = [{"name": "gpu-1", "devicememoryscaling": 1.8}, {"name": "gpu-2", "devicesplitcount": 4}]
    made = told(
        {
            "device-config.yaml": "nvidia:\n  resourceCountName: nvidia.com/gpu\n  deviceMemoryScaling: 2\n",
            "config.json": json.dumps({"nodeconfig": nodes}),
        }
    )
    assert [each.sentence for each in made.told] == [
        f"ConfigMap device-config, device-config.yaml: deviceMemoryScaling 2 is PARTAGE_GPU_MEMORY_BEYOND=100% {WHERE}",
        f"{BY_NODE} {WHERE}",
    ]
    assert all(each.is_known for each in made.told)


@pytest.mark.parametrize(
    ("scaling", "said"),
    [
        ("1", f"PARTAGE_GPU_MEMORY_BEYOND=0% {WHERE}"),
        ("0.5", f"PARTAGE_GPU_MEMORY_BEYOND=0% {WHERE}"),
        ("11", f"PARTAGE_GPU_MEMORY_BEYOND=1000% {WHERE}"),
        ("12", "nothing that partage can promise; allowed: a number up to 11"),
        ("much", "nothing that partage can promise; allowed: a number up to 11"),
        ("yes", "nothing that partage can promise; allowed: a number up to 11"),
        (".nan", "nothing that partage can promise; allowed: a number up to 11"),
    ],
)
def test_what_is_no_more_than_the_card_or_no_number_is_said(scaling: str, said: str) -> None:
    (sentence,) = told({"device-config.yaml": f"nvidia: {{deviceMemoryScaling: {scaling}}}"}).told
    assert sentence.sentence.endswith(f" is {said}")


def test_what_can_not_be_read_is_an_error_with_its_place() -> None:
    (sentence,) = told({"device-config.yaml": "{deviceMemoryScaling: ["}).told
    assert sentence.sentence.startswith("ConfigMap device-config, device-config.yaml: ")


def test_other_config_maps_have_no_pod() -> None:
    (sentence,) = told({"a": "b"}).told
    assert sentence.sentence == "ConfigMap device-config: has no pod; unchanged"
