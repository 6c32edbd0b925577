"""The page's manifests are consistent with themselves, the settings and the code's behaviour."""

from __future__ import annotations

from partage_ui.settings import UiSettings
from rig.identity.permissions import FOLDER, Manifest, delivered

FILES = ("rbac", "networkpolicy", "service", "deployment")
OBJECTS = {(each["kind"], each["metadata"]["name"]): each for file in FILES for each in delivered(f"ui/{file}.yaml")}
OURS = "partage-ui"


def rights(manifest: Manifest) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in manifest["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def test_kustomize_takes_every_file() -> None:
    (kustomization,) = delivered("ui/kustomization.yaml")
    assert kustomization["resources"] == [f"{file}.yaml" for file in FILES]
    assert {path.name for path in (FOLDER / "ui").iterdir()} == {*kustomization["resources"], "kustomization.yaml"}


def test_it_looks_and_reviews_and_may_do_nothing_else() -> None:
    assert rights(OBJECTS["ClusterRole", OURS]) == {
        *((kind, verb) for kind in ("pods", "nodes") for verb in ("list", "watch")),
        ("tokenreviews", "create"),
        ("subjectaccessreviews", "create"),
    }
    role = OBJECTS["Role", OURS]
    assert role["metadata"]["namespace"] == UiSettings().namespace
    assert rights(role) == {("leases", "list"), ("pods/proxy", "get")}


def test_nobody_but_its_own_node_reaches_the_page_unless_it_is_said() -> None:
    (rule,) = OBJECTS["NetworkPolicy", OURS]["spec"]["ingress"]
    assert [each["port"] for each in rule["ports"]] == [9408]


def test_the_daemon_knows_each_variable_that_it_is_given_and_serves_where_it_is_looked_for() -> None:
    pod = OBJECTS["Deployment", OURS]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    own = {f"PARTAGE_UI_{field.upper()}" for field in UiSettings.__struct_fields__}
    said = {each["name"]: each.get("value") for each in container["env"]}
    assert said.keys() <= {*own, "PARTAGE_NODE_NAME"}
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert said["PARTAGE_UI_LISTEN"] == f"0.0.0.0:{ports['page']}"
    assert said["PARTAGE_UI_METRICS_ADDRESS"] == f"0.0.0.0:{ports['metrics']}"
    assert container["command"] == [OURS]
    assert pod["securityContext"]["runAsNonRoot"]
