"""`partage-agent` as a program: it answers only once it knows all that is held, and reports what it can't read."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from partage_plugins.api.places import ENGINES_FOLDER, OCI_SOCKET
from rig.client.wait import until

pytestmark = pytest.mark.slow
AGENT = (sys.executable, "-P", "-m", "partage_oci", "--log-format", "text")


def test_it_serves_without_broker_and_inventory_and_leaves_its_socket_for_the_next(tmp_path: Path) -> None:
    process = subprocess.Popen((*AGENT, "--root", str(tmp_path)), stderr=subprocess.PIPE)
    with process:
        until("it listens", lambda: None if (tmp_path / OCI_SOCKET).exists() else f"exit code {process.poll()}")
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[1]
    assert (process.returncode, b"stopped" in said) == (0, True)
    assert (tmp_path / OCI_SOCKET).exists()
    assert (tmp_path / ENGINES_FOLDER).stat().st_mode & 0o777 == 0o700


def test_it_does_not_serve_while_it_can_not_tell_what_is_held(tmp_path: Path) -> None:
    folder = tmp_path / ENGINES_FOLDER
    folder.mkdir(parents=True)
    (folder / f"{'5' * 64}.json").write_bytes(b"{")
    done = subprocess.run((*AGENT, "--root", str(tmp_path)), capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert "what a container holds can't be read" in done.stderr
    assert f"remove its file from /{ENGINES_FOLDER} once it has ended" in done.stderr
    assert not (tmp_path / OCI_SOCKET).exists()


def test_a_setting_that_can_not_be_is_named() -> None:
    done = subprocess.run((*AGENT, "--nvidia-runtime", "runc", "--check"), capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert "nvidia_runtime is 'runc'; allowed: an absolute path, or empty" in done.stderr
