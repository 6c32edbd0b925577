"""A pod that asks for something that is not done here waits, and one sentence says for what."""

from __future__ import annotations

from typing import Any

import pytest

from support.objects import PREFERRED, REQUIRED, ZONE, affine, near, pod
from unit.scheduler.placing import World

STRANGE = {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"resourceClaims": [{"name": "gpu"}]}, "resource claims (DRA)"),
        ({"schedulingGroup": {"podGroupName": "train"}}, "partage.dev/gang and partage.dev/gang-size instead"),
        ({"schedulingGroup": {"inWordsOfALaterVersion": "train"}}, "does not bind as one"),
        ({"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]}, "gcePersistentDisk"),
        ({"volumes": [{"name": "d", "rbd": {"monitors": ["m"]}}]}, "kind rbd"),
        ({"tolerations": [{"key": "k", "operator": "Gt", "value": "5"}]}, "toleration operator 'Gt' is not known"),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [STRANGE]}}}}, "operator 'Like' is not known"),
        ({"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": STRANGE}]}}}, "operator 'Like'"),
        ({"affinity": affine(near(STRANGE))}, "operator 'Like'"),
        ({"affinity": affine(near({}, namespaceSelector=STRANGE))}, "operator 'Like'"),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "Try"}]},
            "whenUnsatisfiable 'Try' is not known",
        ),
    ],
)
def test_it_is_said_in_one_sentence(spec: dict[str, Any], words: str) -> None:
    why = World().predicates.unsupported(pod("p", **spec))
    assert why is not None
    assert words in why


def test_of_a_plain_pod_nothing_is_said() -> None:
    plain = pod("p", tolerations=[{"operator": "Exists"}], volumes=[{"name": "tmp", "emptyDir": {}}])
    assert World().predicates.unsupported(plain) is None
