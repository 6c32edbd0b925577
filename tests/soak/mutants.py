"""Mutation tests of the modules that decide: each small change of one, and the tests that should notice it.

    tests/soak/mutants.py [MODULE...] [--record]

A change that makes a test fail is killed; one that passes all of them survives. `mutants.txt` records the result of
each change at the commit that its first line names: what was killed there must be killed here, and of each module at
least the same part. Exit status: 0 if so, 3 if not. `--record` writes the file.

No mutation testing library is used because the known ones copy the project into a folder of their own, which our
packages with several roots do not survive, and start an interpreter for each change; here each change is a fork, with
the libraries loaded.
"""

from __future__ import annotations

import argparse
import ast
import copy
import faulthandler
import importlib.util
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
RECORD: Final = Path(__file__).with_suffix(".txt")
AT_ONCE: Final = 2
HANGS_AFTER_S: Final = 300
EXIT_WORSE: Final = 3


@dataclass(frozen=True)
class Model:
    """A module that decides, and its tests."""

    module: str
    file: str
    tests: tuple[str, ...]


MODELS: Final = {
    "decider": Model(
        "partage_scheduler.decision.decider",
        "scheduler/partage_scheduler/decision/decider.py",
        ("tests/unit/scheduler/decision", "tests/unit/scheduler/test_deciding_on_pods.py"),
    ),
    "quantity": Model(
        "partage_plugins.codecs.quantity",
        "plugins/partage_plugins/codecs/quantity.py",
        ("tests/unit/codecs/test_quantity.py",),
    ),
    "lifecycle": Model(
        "partage_isolation.timeslices.lifecycle",
        "isolation/partage_isolation/timeslices/lifecycle.py",
        ("tests/unit/isolation/leasing/test_tables.py",),
    ),
    "admission": Model(
        "partage_crishim.admission", "crishim/partage_crishim/admission.py", ("tests/unit/crishim/rules",)
    ),
    "findings": Model("partage_cli.doctor.findings", "cli/partage_cli/doctor/findings.py", ("tests/unit/cli/doctor",)),
}

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module. Its text identifies it, wherever the line is."""

    text: str
    tree: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    """Every change of the module, one at a time."""
    tree = ast.parse(source)
    seen: Counter[str] = Counter()
    for number, node in enumerate(ast.walk(tree)):
        for changed in _changes(node):
            text = _text(node, changed)
            seen[text] += 1
            yield Mutant(f"{text} #{seen[text]}" if seen[text] > 1 else text, _with(tree, number, changed))


def _text(node: ast.AST, changed: ast.AST) -> str:
    if isinstance(node, ast.Dict) and isinstance(changed, ast.Dict):
        left = {id(key) for key in changed.keys}
        return f"without {next(_line(key) for key in node.keys if key and id(key) not in left)}"
    return f"{_line(node)} -> {_line(changed)}"


def _line(node: ast.AST) -> str:
    text = f"if {ast.unparse(node.test)}: ..." if isinstance(node, ast.If) else ast.unparse(node)
    return " ".join(text.split())


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    yield from _changes_of_values(node)
    yield from _changes_of_statements(node)


def _changes_of_values(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=comparators) if type(op) in _COMPARED:
            yield ast.Compare(left, [_COMPARED[type(op)]()], comparators)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
            yield ast.BinOp(left, _COMPUTED[type(op)](), right)
        case ast.Dict(keys=keys, values=values) if len(keys) > 1:
            for gone, key in enumerate(keys):  # such as a table without one of its rows
                if key:
                    yield ast.Dict(keys[:gone] + keys[gone + 1 :], values[:gone] + values[gone + 1 :])
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case _:
            pass


def _changes_of_statements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield ast.Pass()
        case ast.Return(value=ast.AST() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.Continue():
            yield ast.Break()
        case _:
            pass


def _with(tree: ast.Module, number: int, changed: ast.AST) -> ast.Module:
    """The tree with the node of that number replaced."""
    copied = copy.deepcopy(tree)
    wanted = next(node for index, node in enumerate(ast.walk(copied)) if index == number)

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return ast.copy_location(copy.deepcopy(changed), node) if node is wanted else self.generic_visit(node)

    Swap().visit(copied)
    return ast.fix_missing_locations(copied)


class _Importer(SourceFileLoader):
    """Provides the changed code to importers of the module."""

    def __init__(self, model: Model, tree: ast.Module) -> None:
        super().__init__(model.module, str(ROOT / model.file))
        self._tree = tree

    def find_spec(self, name: str, _path: object = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._tree, f"{self.path} ({fullname})", "exec")


class _Changed:
    """Puts the importer before pytest's own, which loads every module of a distribution that has a plugin."""

    def __init__(self, importer: _Importer) -> None:
        self._importer = importer

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        sys.meta_path.insert(0, self._importer)


def fails(model: Model, tree: ast.Module) -> bool:
    """Whether a test fails, or hangs, with that tree as the module."""
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(HANGS_AFTER_S, exit=True)
        silent = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(silent, fd)
        # Without our pytest plugin: pytest would load the module for it, before it can be changed.
        flags = ("-x", "-q", "-o", f"timeout={HANGS_AFTER_S // 5}", "-p", "no:partage")
        os._exit(int(pytest.main([*flags, *model.tests], plugins=[_Changed(_Importer(model, tree))]) != 0))
    return os.waitpid(child, 0)[1] != 0


def judge(name: str) -> list[str]:
    """A line for each change: killed or survived."""
    model = MODELS[name]
    source = (ROOT / model.file).read_text(encoding="utf-8")
    if fails(model, ast.parse(source)):
        raise SystemExit(f"{name}: its tests fail without any change: {' '.join(model.tests)}")
    found = list(mutants(source))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        killed = list(pool.map(lambda each: fails(model, each.tree), found))
    lines = [f"{name} {'killed' if dead else 'survived'} {each.text}" for each, dead in zip(found, killed, strict=True)]
    _say(f"{name}: {sum(killed)} of {len(killed)} killed")
    return lines


def worse(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Changes that were killed before and now survive, and each module of which a smaller part is killed."""
    was_killed = {line.partition(" killed ")[::2] for line in before if line.split()[1] == "killed"}
    found = [line for line in now if line.partition(" survived ")[::2] in was_killed]
    parts = {name: (_part(name, before), _part(name, now)) for name in MODELS}
    less = [f"{name}: {now:.1%} are killed; it was {then:.1%}" for name, (then, now) in parts.items() if now < then]
    return found + less


def _part(name: str, lines: Sequence[str]) -> float:
    mine = [line.split()[1] for line in lines if line.split()[0] == name]
    return mine.count("killed") / len(mine) if mine else 1.0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="soak mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODELS))
    parser.add_argument("--record", action="store_true", help="write what becomes of them as what must stay so")
    options = parser.parse_args(argv)
    if unknown := set(options.modules) - set(MODELS):
        parser.error(f"no module {', '.join(sorted(unknown))}; there is: {', '.join(MODELS)}")
    os.chdir(ROOT)
    names = options.modules or list(MODELS)
    known = RECORD.read_text(encoding="utf-8").splitlines()
    unrecorded = set(names) - {line.split()[0] for line in known}
    if unrecorded and not options.record:
        raise SystemExit(f"{RECORD.name} has no line of {', '.join(sorted(unrecorded))}; --record writes them")
    now = [line for name in names for line in judge(name)]
    if options.record:
        others = [line for line in known if line.split()[0] not in {"#", *names}]
        RECORD.write_text("\n".join([_commit(), *others, *now]) + "\n", encoding="utf-8")
        return 0
    _say(*(line for line in now if line.split()[1] == "survived"))
    found = worse([line for line in known if line.split()[0] in names], now)
    _say(*(f"WORSE {line}" for line in found))
    return EXIT_WORSE if found else 0


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    return f"# at {done.stdout.strip()}"


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
