"""The manifests to copy for use beside other systems are readable by our scheduler."""

from __future__ import annotations

from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI
from partage_plugins.codecs import read_gang
from rig.identity.permissions import delivered


def test_the_pods_of_the_jobset_are_one_gang_of_all_its_jobs() -> None:
    (jobset,) = delivered("beside/jobset.yaml")
    jobs = jobset["spec"]["replicatedJobs"]
    templates = [job["template"]["spec"]["template"] for job in jobs]
    gangs = {read_gang("team", each["metadata"]["annotations"], {}) for each in templates}
    (gang,) = gangs
    assert gang is not None
    assert gang.size == sum(job["replicas"] * job["template"]["spec"]["parallelism"] for job in jobs)
    for template in templates:
        assert template["spec"]["schedulerName"] == "partage-scheduler"
        for container in template["spec"]["containers"]:
            assert container["resources"]["limits"].keys() == {GPU_MILLI, GPU_MEMORY}
