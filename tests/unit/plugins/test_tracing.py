"""The trace switch prints each call with its implementation and result, without other effects."""

from __future__ import annotations

import pytest

from partage_plugins.errors import PluginFailed
from partage_plugins.framework.scheduler import FrameworkSettings, SchedulerFramework
from support.sides import Record, load_scheduler, plugin, request


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def framework(*, traced: bool, **classes: type) -> SchedulerFramework:
    registry, report = load_scheduler(**classes)
    assert not report.faults
    return SchedulerFramework(registry, Record(), settings=FrameworkSettings(traced=traced))


def test_each_call_is_one_line_with_plugin_hook_arguments_and_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert framework(traced=True, a=plugin(shape="round")).shape(request()) == ("round",)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("partage plugins: a: partage_shape(")
    assert "-> 'round' (" in line


def test_an_exception_is_traced_and_raised_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PluginFailed, match="plugin b: partage_shape: raised ValueError: none"):
        framework(traced=True, b=plugin(shape=ValueError("none"))).shape(request())
    assert "partage plugins: b: partage_shape" in (err := capsys.readouterr().err)
    assert "raised ValueError: none" in err


def test_a_result_that_cannot_be_printed_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(framework(traced=True, a=plugin(shape=Unprintable())).shape(request()), tuple)
    assert "<unprintable: RuntimeError: no>" in capsys.readouterr().err


def test_without_the_switch_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    framework(traced=False, a=plugin(shape="round")).shape(request())
    assert capsys.readouterr().err == ""
