"""Drop-ins added to the tree's units hold only what the daemons can't detect themselves."""

from __future__ import annotations

from pathlib import Path

from partage_base.daemon.settings import host_name
from partage_cli.installation.inspection import Site
from partage_cli.installation.journal import kept, read
from partage_cli.installation.preparation import Units
from partage_cli.installation.status import altered
from partage_cli.installation.tree import OUR_UNITS, point
from unit.installation.made import a_host, put

SITE = Site(node="gpu-7", kubelet="kubelet.service", runtime="/run/x.sock", kubeconfig="", static_pods="")


def written(tmp_path: Path, *, node: str, runtime: str = "/run/containerd/containerd.sock") -> dict[str, str]:
    """Drop-ins, by their names below the unit folder."""
    tree, root = tmp_path / "tree", tmp_path / "root"
    for name in OUR_UNITS:
        put(tree, f"systemd/{name}", "[Unit]\n")
    host, _ = a_host(root)
    site = Site(node=node, kubelet="kubelet.service", runtime=runtime, kubeconfig="", static_pods="")
    units = Units(tree, site)
    units.do(host, units.plan(host).facts)
    folder = root / "etc/systemd/system"
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.conf"))}


def test_a_host_that_is_named_as_its_node_needs_no_drop_in(tmp_path: Path) -> None:
    assert written(tmp_path, node=host_name()) == {}


def test_daemons_of_a_host_with_another_name_than_its_node_are_told_the_nodes(tmp_path: Path) -> None:
    said = "[Service]\nEnvironment=PARTAGE_NODE_NAME=gpu-7\n"
    found = written(tmp_path, node="gpu-7")
    assert found == {f"partage-{each}.service.d/10-node.conf": said for each in ("broker", "crishim")}


def test_a_broker_whose_library_lies_elsewhere_may_install_it_there(tmp_path: Path) -> None:
    put(tmp_path / "root", "etc/partage/partage.toml", '[broker]\nlibrary_folder = "/opt/libraries"\n')
    said = f"[Service]\nReadWritePaths=-{tmp_path}/root/opt/libraries\n"
    assert written(tmp_path, node=host_name()) == {"partage-broker.service.d/10-library.conf": said}


def test_the_nodes_file_has_the_first_word_about_its_name(tmp_path: Path) -> None:
    put(tmp_path / "root", "etc/partage/partage.toml", '[common]\nnode_name = "gpu-7"\n')
    assert written(tmp_path, node="gpu-7") == {}


def test_another_socket_of_the_runtime_is_told(tmp_path: Path) -> None:
    found = written(tmp_path, node=host_name(), runtime="/run/k3s/containerd/containerd.sock")
    assert found["partage-broker.service.d/10-runtime.conf"] == (
        "[Service]\nEnvironment=PARTAGE_BROKER_RUNTIME=/run/k3s/containerd/containerd.sock\n"
    )


def test_a_socket_that_is_put_back_is_not_restarted_under_its_service(tmp_path: Path) -> None:
    """Systemd refuses that; the service with a changed unit does restart."""
    for name in OUR_UNITS:
        put(tmp_path, f"tree/systemd/{name}", "[Unit]\n")
    host, services = a_host(tmp_path / "root")
    units = Units(tmp_path / "tree", SITE)
    units.do(host, units.plan(host).facts)
    for name in ("partage-crishim.socket", "partage-broker.service"):
        (tmp_path / "root/etc/systemd/system" / name).unlink()
    services.told.clear()
    units.do(host, units.plan(host).facts)
    assert [each for each in services.told if each.startswith("restart")] == ["restart partage-broker.service"]


def test_what_of_an_installation_is_missing_or_changed_is_known(tmp_path: Path) -> None:
    for name in OUR_UNITS:
        put(tmp_path, f"opt/partage/1.0/systemd/{name}", "[Unit]\n")
    host, _ = a_host(tmp_path)
    assert list(altered(tmp_path, read(tmp_path))) == [], "nothing is installed"
    with kept(tmp_path) as journal:
        units = Units(tmp_path / "opt/partage/1.0", SITE)
        facts = units.plan(host).facts
        units.do(host, facts)
        point(tmp_path, "1.0")
        journal.done("look", SITE)
        journal.done("units", facts)
        journal.take_version("1.0")
        assert list(altered(tmp_path, journal)) == []
        put(tmp_path, "etc/systemd/system/partage-crishim.service.d/override.conf", "[Service]\n")
        assert list(altered(tmp_path, journal)) == [], "an operator's own drop-in is none of ours"
        (tmp_path / "etc/systemd/system/partage-crishim.socket").unlink()
        put(tmp_path, "etc/systemd/system/partage-broker.service.d/10-node.conf", "[Service]\n")
        (tmp_path / "opt/partage/current").unlink()
        assert set(altered(tmp_path, journal)) == {
            "/etc/systemd/system/partage-crishim.socket",
            "/etc/systemd/system/partage-broker.service.d/10-node.conf",
            "/opt/partage/current",
        }
        journal.begin("upgrade", {})
        assert list(altered(tmp_path, journal)) == [], "another version is on its way"
