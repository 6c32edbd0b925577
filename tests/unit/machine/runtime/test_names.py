"""Names of images become what docker would make of them."""

from __future__ import annotations

import pytest

from partage_cli.machine.runtime.names import whole_name
from partage_plugins.errors import Refused

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("bitnami/redis", "docker.io/bitnami/redis:latest"),
        ("index.docker.io/redis", "docker.io/library/redis:latest"),
        ("localhost/mine", "localhost/mine:latest"),
        ("registry:5000/a/b/c:v1", "registry:5000/a/b/c:v1"),
        ("[::1]:5000/a", "[::1]:5000/a:latest"),
        ("nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04", "nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04"),
        (f"busybox@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
        (f"a.b/c:tag@{DIGEST}", f"a.b/c@{DIGEST}"),
        (DIGEST, DIGEST),
        ("ab" * 32, "ab" * 32),
    ],
)
def test_a_short_name_is_completed_as_docker_does(said: str, meant: str) -> None:
    assert whole_name(said) == meant


@pytest.mark.parametrize("wrong", ["", "Busybox", "a b", "busybox:", "a//b", "-x", "a@sha256:12", "x" * 300, "a\n"])
def test_what_is_no_name_is_refused_in_one_line(wrong: str) -> None:
    with pytest.raises(Refused) as refused:
        whole_name(wrong)
    assert "\n" not in str(refused.value)
    assert "is no name of an image" in str(refused.value)
