"""The format of each identifier."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from partage_plugins.api import containers, names

ACCEPTED: list[tuple[Any, list[str]]] = [
    (names.NodeNameText, ["n", "gpu-1.example.com", "1", "a" * 253]),
    (names.PodUidText, ["8f6b1a52-6f1e-4c3e-9b39-8a1a1f0c2d11", "0123456789abcdef" * 2]),
    (names.ContainerNameText, ["c", "main-0", "0", "a" * 63]),
    (names.CardIdText, ["GPU-6f0c0b1e-0000-1111-2222-333344445555", "MIG-GPU-1/1/0", "0000:18:00.0", "a" * 128]),
    (names.KindText, ["gpu", "fpga-2", "a" * 31]),
    (names.ContainerKeyText, ["0123456789abcdef" * 2]),
    (names.TagText, ["a", "A.b_c-9", "a" * 63]),
    (containers.CdiName, ["nvidia.com/gpu=all", "partage.dev/gpu=GPU-1"]),
    (containers.AnnotationKey, ["plain", "example.com/key"]),
    (containers.AbsolutePath, ["/", "/run/partage"]),
    (containers.EnvName, ["PATH", "a.b"]),
]
REFUSED: list[tuple[Any, list[str]]] = [
    (names.NodeNameText, ["", "N", "-n", "n-", ".n", "n.", "a" * 254, "n\n", "n/a", "é"]),
    (names.PodUidText, ["", "-u", "a/b", "u\n", "u" * 129, "a b"]),
    (names.ContainerNameText, ["", "C", "a.b", "a_b", "-a", "a-", "a" * 64, "a\n", "a/b"]),
    (names.CardIdText, ["", "-", "a b", "a,b", "a;b", "a\n", "a" * 129]),
    (names.KindText, ["", "GPU", "2", "-a", "a.b", "a" * 32, "gpu\n"]),
    (names.ContainerKeyText, ["", "0" * 31, "0" * 33, "G" * 32]),
    (names.TagText, ["", "-a", "a-", "a b", "a" * 64, "a\n"]),
    (containers.CdiName, ["", "nvidia.com/gpu", "gpu=1", "nvidia.com/gpu=1\n", "a b/c=d"]),
    (containers.AnnotationKey, ["", "/key", "example.com/", "a b", "a\n", "a" * 64]),
    (containers.AbsolutePath, ["", "run", "/a\0"]),
    (containers.EnvName, ["", "A=B", "A\0"]),
]


@pytest.mark.parametrize(("type_", "text"), [(type_, text) for type_, texts in ACCEPTED for text in texts])
def test_accepted(type_: Any, text: str) -> None:
    assert msgspec.json.decode(msgspec.json.encode(text), type=type_) == text


@pytest.mark.parametrize(("type_", "text"), [(type_, text) for type_, texts in REFUSED for text in texts])
def test_refused(type_: Any, text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(text), type=type_)


def test_every_pattern_is_said_in_words() -> None:
    said = {names.KIND_PATTERN, names.TAG_PATTERN, names.CARD_ID_PATTERN, names.CONTAINER_NAME_PATTERN}
    assert said <= set(names.IN_WORDS)
    assert all(words and words.isprintable() for words in names.IN_WORDS.values())
