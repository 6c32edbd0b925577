"""`partage resize` without a cluster: containers of engines can't be resized, and the message gives an alternative."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_plugins.api.places import OCI_SOCKET
from unit.cli.program import partage


def test_on_a_machine_of_docker_it_is_refused_with_what_to_do_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    socket = tmp_path / OCI_SOCKET
    socket.parent.mkdir(parents=True)
    socket.touch()
    done = partage(tmp_path, "resize", "train", "--share", "300")
    assert done.returncode == 1
    assert "containers of Docker and Podman are not resized while they run" in done.stderr
    socket.unlink()
    assert "Docker" not in partage(tmp_path, "resize", "train", "--share", "300").stderr
