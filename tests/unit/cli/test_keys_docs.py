"""The page about keys matches the commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec.yaml

from partage_cli.keys.command import command

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs/keys.md").read_text()


def test_every_command_is_on_the_page_and_the_page_names_no_other() -> None:
    assert set(re.findall(r"partage keys (\w+)", PAGE)) == set(command.commands)


def test_every_option_of_the_page_exists() -> None:
    known = {option for each in command.commands.values() for parameter in each.params for option in parameter.opts}
    assert set(re.findall(r"(?<![\w-])--(?:dir|force|output)\b", PAGE)) <= known
    assert "-o" in known


def test_the_page_shows_the_exact_words_of_a_new_pair() -> None:
    for words in ("private half: ", "public half:  ", "signs now:    "):
        assert f"\n{words}" in PAGE


def test_keys_are_put_where_the_manifests_look_for_them() -> None:
    namespace = msgspec.yaml.decode((ROOT / "manifests/advertiser/namespace.yaml").read_text())["metadata"]["name"]
    named = re.findall(r"kubectl -n (\S+) create", PAGE + (ROOT / "manifests/README.md").read_text())
    assert set(named) == {namespace}
