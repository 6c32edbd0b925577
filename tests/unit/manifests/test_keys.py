"""Manifests for keys are consistent with the commands that use them, and with the pods that mount the keys."""

from __future__ import annotations

import re
from typing import Any

import pytest

from partage_cli.keys import objects
from partage_cli.keys.command import command
from rig.identity.people import OUR_NAMESPACE
from rig.identity.permissions import delivered

POLICIES = [each for each in delivered("keys/admission.yaml") if each["kind"] == "ValidatingAdmissionPolicy"]
ACCOUNT, ROLE, _ = delivered("keys/rbac.yaml")
(JOB,) = delivered("keys/job.yaml")
(CRON,) = delivered("keys/certificates.yaml")
SECRETS = {objects.SIGNING, objects.AUTHORITY, objects.EXTENDER_TLS, objects.CALLER_TLS}
CONFIG_MAPS = {objects.KEYS, objects.EXTENDER_CA}


def test_the_account_may_read_and_change_what_the_commands_write_and_nothing_else() -> None:
    make, secrets, config_maps = ROLE["rules"]
    assert make["verbs"] == ["create"]
    assert set(secrets["resourceNames"]) == SECRETS
    assert set(config_maps["resourceNames"]) == CONFIG_MAPS
    assert secrets["verbs"] == config_maps["verbs"] == ["get", "patch"]


def test_the_policies_name_the_same_objects_and_the_same_account() -> None:
    root, account = POLICIES
    assert f"'{objects.KEYS}'" in root["spec"]["matchConditions"][0]["expression"]
    named = set(re.findall(r"'(partage-[a-z-]+)'", account["spec"]["validations"][1]["expression"]))
    assert named - {OUR_NAMESPACE} == SECRETS | CONFIG_MAPS
    user = f"'system:serviceaccount:{OUR_NAMESPACE}:{objects.ACCOUNT}'"
    assert all(user in str(policy["spec"]["matchConditions"]) for policy in POLICIES)
    assert ACCOUNT["metadata"]["name"] == objects.ACCOUNT


@pytest.mark.parametrize("pod", [JOB["spec"]["template"], CRON["spec"]["jobTemplate"]["spec"]["template"]])
def test_the_jobs_run_a_command_that_exists_as_that_account_and_not_as_root(pod: Any) -> None:
    (container,) = pod["spec"]["containers"]
    partage, keys, name, *flags = container["command"]
    assert (partage, keys) == ("partage", "keys")
    assert set(flags) <= {option for each in command.commands[name].params for option in each.opts}
    assert pod["spec"]["serviceAccountName"] == objects.ACCOUNT
    assert pod["spec"]["securityContext"]["runAsNonRoot"]
    assert pod["spec"]["schedulerName"] == "default-scheduler"
