"""Equivalent spellings of a path are recognized; one list holds the paths that NVIDIA's runtime reads."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api.nvidia import MOUNTED, mounted_name
from partage_plugins.rules.paths import clean_path


@given(st.text("/.a-", max_size=12))
def test_a_path_is_clean_from_the_root_however_it_was_written(path: str) -> None:
    clean = clean_path(path)
    assert clean == "/" + posixpath.normpath("/" + path).lstrip("/")
    assert clean_path(clean) == clean
    assert not {"", ".", ".."} & set(clean[1:].split("/")) or clean == "/"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (MOUNTED, ""),
        (f"{MOUNTED}/all", "all"),
        (f"{MOUNTED}all", "all"),
        (f"{MOUNTED}cdi/nvidia.com/gpu/all", "cdi/nvidia.com/gpu/all"),
        ("/var/run/nvidia", None),
        (f"/x{MOUNTED}", None),
    ],
)
def test_a_mount_names_what_comes_after_the_beginning_that_nvidias_runtime_looks_for(
    path: str, name: str | None
) -> None:
    assert mounted_name(path) == name
