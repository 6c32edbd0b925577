"""The page's recipe queries Prometheus for existing metrics, and resizes as described."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "manifests/resize/README.md").read_text()
(RECIPE,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
CURL = """#!/bin/sh
echo "$*" >>"$ASKED"
case "$*" in *wanted*) value=$WANTED ;; *) value=$SHARE ;; esac
printf '{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1.7e9,"%s"]}]}}' "$value"
"""
PARTAGE = '#!/bin/sh\necho "$*"\n'


@pytest.mark.parametrize(
    ("wanted", "share", "then"),
    [
        (950, 300, "--share 400"),
        (271, 300, "--share 400"),
        (270, 300, ""),
        (149, 300, "--share 200"),
        (150, 300, ""),
        (950, 800, ""),
        (0, 200, ""),
        (950, 750, "--share 800"),
    ],
)
def test_the_recipe_grows_what_is_short_and_shrinks_what_has_too_much(
    tmp_path: Path, wanted: int, share: int, then: str
) -> None:
    for name, text in (("by-load.sh", RECIPE), ("curl", CURL), ("partage", PARTAGE)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PROMETHEUS": "http://prometheus",
        "ASKED": str(tmp_path / "asked"),
        "WANTED": str(wanted),
        "SHARE": str(share),
    }
    words = [str(tmp_path / "by-load.sh"), "team-a", "train-0", "main", "200", "800"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == (f"resize team-a/train-0 --container main {then}" if then else "")
    asked = (tmp_path / "asked").read_text()
    known = (ROOT / "docs/isolation.md").read_text()
    assert all(f"`{name}`" in known for name in re.findall(r"partage_\w+", asked))
    assert 'namespace="team-a",pod="train-0",container="main",window="60s"' in asked
