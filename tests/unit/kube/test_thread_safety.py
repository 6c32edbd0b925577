"""Threads that decode into a type for the first time concurrently all succeed, and none crashes the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

ROUNDS = """
import sys, threading, types
import msgspec
from partage_base.thread_safety import prepare_structs, thread_safe

SOURCE = '''
from __future__ import annotations
import msgspec
class Inner(msgspec.Struct, frozen=True):
    text: str = ""
    counts: dict[str, int] = {}
class Middle(msgspec.Struct, frozen=True):
    inner: Inner = Inner()
    more: tuple[Inner, ...] = ()
class Outer(msgspec.Struct, frozen=True):
    middle: Middle = Middle()
    by_name: dict[str, Middle] = {}
'''
TEXT = b'{"middle":{"inner":{"text":"a","counts":{"b":1}},"more":[{"text":"c"}]},"by_name":{"d":{"inner":{}}}}'

sys.setswitchinterval(1e-6)
for number in range(400):
    made = sys.modules["made"] = types.ModuleType("made")
    exec(SOURCE, made.__dict__)
    PREPARE
    ready, found = threading.Barrier(4), []

    def decode():
        ready.wait()
        found.append(msgspec.json.decode(TEXT, type=TYPE).middle.more[0].text)

    threads = [threading.Thread(target=decode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["c"] * 4, (number, found)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("prepare", "type_"), [("", "thread_safe(made.Outer)"), ("prepare_structs()", "made.Outer")])
def test_a_first_decode_in_many_threads_takes_no_process_along(prepare: str, type_: str) -> None:
    program = ROUNDS.replace("PREPARE", prepare or "pass").replace("TYPE", type_)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
