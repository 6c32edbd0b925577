"""People are told of each spec as it ends, from what ginkgo writes anyway."""

from __future__ import annotations

from rig.critest.progress import Progress

LOG = """\
Will run 3 of 122 specs
------------------------------
[BeforeSuite]
/somewhere/util.go:98
[BeforeSuite] PASSED [0.000 seconds]
------------------------------
SSSSS
------------------------------
[k8s.io] Things when used pass
/somewhere/things.go:106
  STEP: use it @ 11/21/26 11:34:30.968
• [0.608 seconds]
------------------------------
SS
------------------------------
[k8s.io] Things when used do not apply
S [SKIPPED] [0.005 seconds]
[k8s.io] Things [BeforeEach] when used do not apply
------------------------------
[k8s.io] Things when used fail
  [FAILED] in [It] - /somewhere/things.go:226
• [FAILED] [12.189 seconds]
[k8s.io] Things when used [It] fail
"""


def test_each_spec_is_told_once_with_its_number_end_time_and_name() -> None:
    progress = Progress(wanted=3)
    assert [told for line in LOG.splitlines() if (told := progress.read(line))] == [
        "critest 1/3: passed in 0.6 s: [k8s.io] Things when used pass",
        "critest 2/3: skipped in 0.0 s: [k8s.io] Things when used do not apply",
        "critest 3/3: failed in 12.2 s: [k8s.io] Things when used fail",
    ]
