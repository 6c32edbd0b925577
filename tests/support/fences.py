"""The fenced blocks of README and docs/: their languages, and the commands that readers type."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_BLOCK: Final = re.compile(r"^(?P<indent> *)```(?P<kind>\S*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_PROMPTS: Final = ("$ ", "# ")
_HERE: Final = re.compile(r"<<'(?P<end>\w+)'$")
_CODE: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_SUBSTITUTED: Final = re.compile(r'"\$\((?P<command>[^)]*)\)"')
_BETWEEN: Final = frozenset(("|", "||", "&&", "&", ";"))
_BEFORE: Final = frozenset(("eval", "sudo"))


class Block(NamedTuple):
    """One fenced block, without its indentation in a list."""

    page: str
    heading: str
    kind: str
    text: str


class Typed(NamedTuple):
    """A command line with its continuation lines."""

    where: Block
    line: str

    @property
    def stdin(self) -> str:
        """The here-document after `<<'END'`."""
        first, _, rest = self.line.partition("\n")
        return rest.rpartition("\n")[0] if _HERE.search(first) else ""


@cache
def blocks() -> tuple[Block, ...]:
    """The blocks of all pages, in order."""
    return tuple(each for page in PAGES for each in _blocks_of(str(page.relative_to(ROOT)), page.read_text()))


def _blocks_of(page: str, text: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(text):
        headings = re.findall(r"^#+ (.+)$", text[: found.start()], re.MULTILINE)
        yield Block(page, headings[-1] if headings else "", found["kind"], textwrap.dedent(found["text"]))


def of_kind(kind: str) -> tuple[Block, ...]:
    return tuple(each for each in blocks() if each.kind == kind)


def typed() -> Iterator[Typed]:
    """The commands of all console blocks, without their output."""
    for block in of_kind("console"):
        yield from (Typed(block, line) for line in lines(block.text))


def lines(console: str) -> list[str]:
    """The commands of one console, each with its continuation lines."""
    found: list[str] = []
    end = ""
    goes_on = False
    for line in console.splitlines():
        if goes_on:
            found[-1] += f"\n{line}"
        elif line.startswith(_PROMPTS):
            found.append(line[len(_PROMPTS[0]) :])
            here = _HERE.search(line)
            end = here["end"] if here else ""
        else:
            continue
        goes_on = line.endswith("\\") or end not in ("", line)
    assert found, f"a console without a line that begins with one of {_PROMPTS}: {console}"
    return found


def documents() -> Iterator[tuple[Block, Any]]:
    """All YAML documents: of YAML blocks, and of here-documents."""
    texts = [(block, block.text) for block in of_kind("yaml")]
    texts += [(each.where, each.stdin) for each in typed() if each.stdin]
    for block, text in texts:
        yield from ((block, msgspec.yaml.decode(document)) for document in text.split("\n---\n"))


def objects() -> Iterator[tuple[Block, dict[str, Any]]]:
    """The Kubernetes objects; omitted required fields of pods are filled in."""
    for block, document in documents():
        manifest: dict[str, Any] = document if isinstance(document, dict) else {}
        if "kind" in manifest:
            yield block, _whole(manifest)
        elif "spec" in manifest:
            yield block, _whole({"apiVersion": "v1", "kind": "Pod", **manifest})


def _whole(manifest: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {**manifest, "metadata": {"name": "of-a-page", **manifest["metadata"]}}
    if made["kind"] == "Pod":
        containers: list[dict[str, Any]] = made["spec"].get("containers", [{"name": "main"}])
        made["spec"] = {**made["spec"], "containers": [{"image": "image", **each} for each in containers]}
    return made


def commands(line: str) -> list[tuple[str, ...]]:
    """The words of each program that a line starts, also after `eval`, `sudo` or `--`."""
    first, _, _ = line.partition("\n")
    shell = _HERE.sub("", first) if _HERE.search(first) else line
    shell = _SUBSTITUTED.sub(r"\g<command>", shell.replace("\\\n", " "))
    lexer = shlex.shlex(shell, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    is_target = False
    for word in lexer:
        if word in _BETWEEN:
            found.append([])
        elif word.startswith((">", "<")):
            is_target = True
        elif is_target:
            is_target = False
        elif found[-1] or word not in _BEFORE:
            found[-1].append(word)
    behind = [each[each.index("--") + 1 :] for each in found if "--" in each]
    return [tuple(each) for each in (*found, *behind) if each]


def given(words: Sequence[str], flag: str) -> list[str]:
    """All values of that flag."""
    return [value for name, value in pairwise(words) if name == flag]


def prose(page: Path) -> str:
    """A page without its blocks."""
    return _BLOCK.sub("", page.read_text())


def spans(program: str) -> list[tuple[str, str]]:
    """Commands of that program in running text without duplicates, each with a page that has it."""
    found = {
        code: str(page.relative_to(ROOT))
        for page in PAGES
        for code in _CODE.findall(prose(page))
        if re.match(rf"{program} [a-z-]", code)
    }
    return sorted(found.items())
