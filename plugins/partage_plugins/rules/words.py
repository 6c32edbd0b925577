"""Finds keys about cards that no plugin reads, so that a pod does not silently run without a card. Pure.

Resources are reported only if no node has them: they keep a pod from running. Annotations, labels and environment
variables keep nothing from running.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from partage_plugins.api.keys import PREFIX
from partage_plugins.api.pods import Pod
from partage_plugins.api.words import DialectWords, Where

_MOST: Final = 3
"""Keys of one pod that are reported."""
_TRIED: Final = 16
"""Keys of one pod that are compared with all known ones, which is slow."""
_LONGEST: Final = 80
_SHORTEST: Final = 5
"""Length of a key that is recognized without its domain; shorter labels such as `gpu` may belong to anything."""
_ALIKE: Final = 0.8


class Spoken(NamedTuple):
    """One key of a pod that relates to cards."""

    key: str
    where: Where
    words: DialectWords
    meant: str | None = None
    """The most similar known key; None if it is spelt correctly or resembles none."""

    @property
    def is_asking(self) -> bool:
        return self.key in self.words.asking or self.key.startswith(self.words.families)

    @property
    def is_passed_over(self) -> bool:
        """Whether it has no effect on a pod that runs with a request in other keys."""
        return self.is_asking and not self.words.is_read and self.where != "limits"

    @property
    def is_word(self) -> bool:
        return self.is_asking or self.key in self.words.beside


class Lexicon:
    """The keys of all known systems."""

    def __init__(self, words: Iterable[DialectWords]) -> None:
        self._words = tuple(words)
        self._by_key = {key: each for each in self._words for key in (*each.beside, *each.asking)}
        self._known = frozenset(key for each in self._words for key in each.known)
        self._families = tuple((prefix, each) for each in self._words for prefix in each.families)
        self._family_prefixes = tuple(prefix for prefix, _ in self._families)
        prefixes = [(prefix, each) for each in self._words for prefix in each.prefixes]
        self._by_prefix = sorted(prefixes, key=lambda item: -len(item[0]))
        self._prefixes = tuple(prefix for prefix, _ in self._by_prefix)
        bare = (key for key in self._by_key if "/" not in key or key.startswith(PREFIX))
        self._by_name = {name: key for key in bare if len(name := key.removeprefix(PREFIX)) >= _SHORTEST}
        self._meant = lru_cache(maxsize=1 << 10)(self._most_alike)

    def spoken(self, pod: Pod, *, absent: Collection[str]) -> Iterator[Spoken]:
        """The pod's keys that relate to cards, correct or misspelt; of resources only those that are `absent`."""
        left = iter(range(_TRIED))
        for key, where in (*_resources(pod, absent), *_keys(pod)):
            words = self._words_of(key)
            if where == "variables":  # of unknown origin, except those that a system names
                if words is not None and words.where == where:
                    yield Spoken(key, where, words)
            elif words is not None:
                yield Spoken(key, where, words)
            elif key not in self._known and self._may_be_misspelt(key) and next(left, None) is not None:
                meant, words = self._meant(key)
                if words is not None:
                    yield Spoken(key, where, words, meant)

    def in_vain(self, pod: Pod, *, asks: bool, absent: Collection[str] = ()) -> str | None:
        """A sentence for the pod's owner about the keys that are not read; None if there are none.

        `absent`: resources that the pod waits for and no node has. `asks`: a dialect read a request in the pod. Then
        only misspelt keys and other systems' keys are reported; not resources, since the pod waits for them and gets
        that reason.
        """
        spoken = list(self.spoken(pod, absent=absent))
        if asks:
            told = [each for each in spoken if each.meant is not None or each.is_passed_over]
        else:
            heard = {each.system for each in self._heard(pod)}
            told = [each for each in spoken if not each.is_word or each.words.system not in heard]
        if not told:
            return None
        more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
        begin = (
            "not all that this pod says of cards is read"
            if asks
            else "this pod says something of cards and asks for none"
        )
        keys = "; ".join(_in_words(each) for each in told[:_MOST])
        remedies = dict.fromkeys(each.words.remedy for each in told[:_MOST])
        return f"{begin}: {keys}{more}. {'. '.join(remedies)}"

    def _heard(self, pod: Pod) -> Iterator[DialectWords]:
        """The systems in whose keys the pod makes a valid request: if it had no effect, it requested nothing."""
        for key, where in (*_resources(pod, resources_of(pod)), *_keys(pod)):
            words = self._by_key.get(key)
            if words is not None and words.is_read and key in words.asking and where == words.where:
                yield words

    def _words_of(self, key: str) -> DialectWords | None:
        """The system of a correctly spelt key."""
        words = self._by_key.get(key)
        if words is None and key.startswith(self._family_prefixes):
            return next(each for prefix, each in self._families if key.startswith(prefix))
        return words

    def _may_be_misspelt(self, key: str) -> bool:
        return key.startswith(self._prefixes) or ("/" not in key and "gpu" in key.lower())

    def _most_alike(self, key: str) -> tuple[str | None, DialectWords | None]:
        """Below a prefix any key belongs to that system; elsewhere a key must resemble a known one."""
        for prefix, words in self._by_prefix:
            if key.startswith(prefix):
                near = get_close_matches(key, (*words.asking, *words.beside), n=1, cutoff=_ALIKE)
                return (near[0] if near else None), words
        near = get_close_matches(key, self._by_name, n=1, cutoff=_ALIKE)
        if not near:
            return None, None
        meant = self._by_name[near[0]]
        return meant, self._by_key[meant]


def resources_of(pod: Pod) -> Collection[str]:
    """All resources that its containers name, in order."""
    return dict.fromkeys(key for each in pod.containers for key in (*each.limits, *each.requests)).keys()


def _resources(pod: Pod, told: Collection[str]) -> Iterator[tuple[str, Where]]:
    for key in resources_of(pod) if told else ():
        if key in told:
            yield key, "limits"


def _keys(pod: Pod) -> Iterator[tuple[str, Where]]:
    for container in pod.containers:
        for key in container.variables:
            yield key, "variables"
    for key in pod.annotations:
        yield key, "annotations"
    for key in pod.labels:
        yield key, "labels"


def _in_words(each: Spoken) -> str:
    key, words = _short(each.key), each.words
    if each.meant is not None:
        return f"{key} is no word of {words.system}'s (did you mean {each.meant}?)"
    if not each.is_word:
        return f"{key} is no word of {words.system}'s that is known here"
    if each.key in words.beside:
        return f"{key} asks for nothing by itself"
    if words.is_read:
        return f"{key} is read in {words.where}, not in {each.where}"
    if each.where == "variables":
        return f"the variable {key} is {words.system}'s and is not read here"
    return f"{key} is a word of {words.system}'s and is not read here"


def _short(key: str) -> str:
    return key if len(key) <= _LONGEST else f"{key[:_LONGEST]}…"


def first_keys(spoken: Iterable[Spoken]) -> str:
    """The first few keys, for a list."""
    return ", ".join(_short(each.key) for each in islice(spoken, _MOST))
