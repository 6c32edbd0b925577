"""A path leads where the links of an image lead, and nowhere above its root."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.audit.proofs import led_to

PLACE = "/run/partage/lib"


@pytest.mark.parametrize(
    ("links", "leads_to"),
    [
        ({}, PLACE),
        ({"/run": "/var/run"}, "/var/run/partage/lib"),
        ({"/run": "var/run"}, "/var/run/partage/lib"),
        ({"/run": "/var/run/"}, "/var/run/partage/lib"),
        ({"/run": "../../x"}, "/x/partage/lib"),
        ({"/run": "."}, "/partage/lib"),
        ({"/run": "/"}, "/partage/lib"),
        ({"/run": "/a", "/a": "b", "/b/partage": "../c"}, "/c/lib"),
        ({"/run": "/var/run", "/var": "/private/var"}, "/private/var/run/partage/lib"),
        ({"/run": "/run"}, PLACE),
        ({"/run": "/a", "/a": "/run"}, PLACE),
        ({"/run": "/run/.."}, PLACE),
    ],
)
def test_where_a_place_is(links: Mapping[str, str], leads_to: str) -> None:
    assert led_to(PLACE, links.get) == leads_to


NAMES = st.sampled_from(["/run", "/var", "/a", "/a/b", "..", ".", "b", "", "/", "a/../b"])


@given(st.dictionaries(NAMES, NAMES), NAMES)
def test_any_links_end_at_an_absolute_path(links: Mapping[str, str], path: str) -> None:
    found = led_to(f"/{path}", links.get)
    assert found.startswith("/")
    assert found == f"/{path}" or not {"..", ""} & set(found[1:].split("/")) or found == "/"
