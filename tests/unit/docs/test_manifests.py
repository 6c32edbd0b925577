"""Requests for cards in the examples of README and docs/, for pods, services and engines' containers, are readable.

That Kubernetes accepts the objects is tested by real/chart; rows of dialects are tested with the plugin guide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from partage_oci.words import asked_of
from partage_plugins.api import GPU
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_scheduler.decision import Ledger
from partage_scheduler.objects import ApiPod, seen
from support.dialect_rows import all_plugins
from support.fences import Block, commands, documents, given, objects, typed

OTHERS = {
    "docs/docker.md": "a file of Compose: below",
    "docs/plugins.md": "rows of a dialect: test_plugin_guide",
    "docs/runbooks.md": "a part of Prometheus' file: real/chart",
}
"""Pages whose YAML is no Kubernetes object."""
BY_CLAIM = "resourceClaims"


def test_all_yaml_is_an_object_of_kubernetes_or_listed() -> None:
    known = {id(block) for block, _ in objects()}
    assert {block.page for block, _ in documents() if id(block) not in known} == OTHERS.keys()


@pytest.mark.parametrize(
    ("block", "pod"),
    [(block, each) for block, each in objects() if each["kind"] == "Pod" and BY_CLAIM not in each["spec"]],
    ids=lambda value: value.page if isinstance(value, Block) else "",
)
def test_a_pod_of_a_page_asks_for_cards_of_the_scheduler_that_reads_it(block: Block, pod: dict[str, Any]) -> None:
    del block
    assert pod["spec"]["schedulerName"] == "partage-scheduler"
    metadata = {"namespace": "team", "uid": "u", **pod["metadata"]}
    framework = SchedulerFramework(all_plugins(), Ledger())
    assert framework.requests(seen(msgspec.convert({**pod, "metadata": metadata}, ApiPod))).of(GPU)


def said() -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    """Variables and annotations of containers of engines."""
    for each in typed():
        for program, *words in commands(each.line):
            if program in {"docker", "podman"} and "run" in words:
                variables = tuple(text if "=" in text else f"{text}=1" for text in given(words, "-e"))
                yield variables, dict(text.split("=", 1) for text in given(words, "--annotation"))
    for _, document in documents():
        if isinstance(document, dict) and "services" in document:
            for service in document["services"].values():
                assert service["runtime"] == "partage"
                yield tuple(f"{name}={value}" for name, value in service["environment"].items()), {}


@pytest.mark.parametrize(("variables", "annotations"), list(said()))
def test_a_container_of_an_engine_says_words_that_are_read(
    variables: tuple[str, ...], annotations: dict[str, str]
) -> None:
    asked = asked_of(variables, annotations)
    assert asked is not None
    assert len(asked.said) == len(variables) + len(annotations)
