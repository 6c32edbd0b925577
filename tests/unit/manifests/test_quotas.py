"""Manifests for quotas name resources that dialects read, and none is applied by default."""

from __future__ import annotations

import re
from typing import Any

from partage_dialects import hami, kai, kubegpu_annotation, kubeshare_v1, kubeshare_v2, volcano
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI, GPU_RESOURCES, GPUS
from rig.identity.permissions import FOLDER, delivered

LABEL = {"partage.dev/quota": "strict"}
OBJECTS = delivered("quotas/admission.yaml")
POLICIES: dict[str, Any] = {
    each["metadata"]["name"]: each["spec"] for each in OBJECTS if each["kind"] == "ValidatingAdmissionPolicy"
}
RESOURCES = GPU_RESOURCES | {volcano.NUMBER, volcano.MEMORY, hami.NUMBER}


def test_nothing_holds_unless_the_folder_is_applied_and_the_namespace_labelled() -> None:
    (kustomization,) = delivered("quotas/kustomization.yaml")
    assert kustomization["resources"] == ["admission.yaml"]
    for folder in ("scheduler", "advertiser", "extender"):
        assert "quotas" not in (FOLDER / folder / "kustomization.yaml").read_text()
    bindings = [each["spec"] for each in OBJECTS if each["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert {each["policyName"] for each in bindings} == POLICIES.keys()
    assert all(each["matchResources"] == {"namespaceSelector": {"matchLabels": LABEL}} for each in bindings)
    assert {policy["failurePolicy"] for policy in POLICIES.values()} == {"Fail"}


def test_memory_is_asked_for_wherever_a_dialect_has_a_word_for_it() -> None:
    ((asked,),) = [[each["expression"] for each in POLICIES["partage-quota-memory"]["variables"]]]
    assert set(re.findall(r"'([^']+)'", asked)) == {
        *(GPU_MILLI, GPUS, GPU_MEMORY),
        *(volcano.NUMBER, volcano.CORES, volcano.PERCENTAGE, volcano.MEMORY),
        *(hami.CORES, hami.PERCENTAGE, hami.MEMORY),
    }


def test_the_requests_of_all_other_dialects_are_refused() -> None:
    (validation,) = POLICIES["partage-quota-dialects"]["validations"]
    refused = re.findall(r"'([^']+)'", validation["expression"])
    for key in (kubeshare_v1.REQUEST, kubeshare_v1.GPUID, kubeshare_v2.REQUEST, kubeshare_v2.MEMORY):
        assert key.partition("/")[0] + "/" in refused
    assert {kubegpu_annotation.KUBEGPU, kubegpu_annotation.KUBEDEVICE} <= set(refused)
    assert {kai.PREFIX, kai.FRACTION, kai.MEMORY, *kai.FRACTION_LIMITS, *kai.MEMORY_LIMITS} <= set(refused)


def test_what_is_there_to_copy_names_resources_that_are_read() -> None:
    (quota,) = delivered("quotas/resourcequota.yaml")
    assert {name.removeprefix("requests.") for name in quota["spec"]["hard"]} <= RESOURCES
    assert all(name.startswith("requests.") for name in quota["spec"]["hard"])
    (ranges,) = delivered("quotas/limitrange.yaml")
    (only,) = ranges["spec"]["limits"]
    assert only.keys() == {"type", "default"}
    assert only["default"].keys() <= RESOURCES


def test_the_page_counts_sharepods_by_the_name_that_they_have() -> None:
    (kind,) = delivered("sharepods/crd.yaml")
    page = (FOLDER / "quotas/README.md").read_text()
    assert f"`count/{kind['metadata']['name']}`" in page


def test_kueues_objects_name_each_other_and_cover_our_resources() -> None:
    flavor, cluster_queue, queue = delivered("quotas/kueue.yaml")
    (group,) = cluster_queue["spec"]["resourceGroups"]
    (given,) = group["flavors"]
    assert given["name"] == flavor["metadata"]["name"]
    assert [each["name"] for each in given["resources"]] == group["coveredResources"]
    assert {GPU_MILLI, GPU_MEMORY} == {name for name in group["coveredResources"] if "/" in name}
    assert queue["spec"]["clusterQueue"] == cluster_queue["metadata"]["name"]
