"""What Volcano's and HAMi's own configuration says is said to their dialects by variables."""

from __future__ import annotations

import pytest

from partage_dialects.hami import HamiDialect
from partage_dialects.vgpu import VgpuSettings, settings_from
from partage_dialects.volcano import VolcanoDialect
from partage_plugins.api import GPU, ContainerName, GpuRequest
from partage_plugins.testing.examples import pod

MIB = 1 << 20


def asked(dialect: HamiDialect | VolcanoDialect, **limits: str) -> GpuRequest:
    prefix = "nvidia.com/" if isinstance(dialect, HamiDialect) else "volcano.sh/vgpu-"
    found = dialect.partage_requests(pod({prefix + name: text for name, text in limits.items()}))
    assert found is not None
    request = found[ContainerName("main")][GPU.name]
    assert isinstance(request, GpuRequest)
    return request


def test_volcanos_defaults_are_for_containers_that_say_nothing() -> None:
    dialect = VolcanoDialect(VgpuSettings(default_memory_mib=3000, default_cores=20))
    assert asked(dialect, number="1") == GpuRequest(share_milli=200, limit_milli=200, memory_bytes=3000 * MIB)
    assert asked(dialect, number="1", memory="10", cores="0") == GpuRequest(memory_bytes=10 * MIB, spare_share=True)
    assert asked(dialect, **{"number": "1", "memory-percentage": "50"}).memory_milli == 500


def test_hamis_defaults_are_for_containers_that_say_nothing() -> None:
    dialect = HamiDialect(VgpuSettings(default_memory_mib=3000, default_cores=20, default_number=2))
    assert asked(dialect, gpu="1").memory_bytes == 3000 * MIB
    assert asked(dialect, gpumem="10") == GpuRequest(count=2, share_milli=200, limit_milli=200, memory_bytes=10 * MIB)


def test_a_factor_multiplies_what_pods_say_and_no_default() -> None:
    settings = VgpuSettings(memory_factor=10, default_memory_mib=7)
    for dialect, said in ((VolcanoDialect(settings), {"memory": "4"}), (HamiDialect(settings), {"gpumem": "4"})):
        assert asked(dialect, **said).memory_bytes == 40 * MIB
    assert asked(VolcanoDialect(settings), number="1").memory_bytes == 7 * MIB


def test_settings_are_read_from_the_environment_by_their_dialects_prefix() -> None:
    said = {"PARTAGE_HAMI_DEFAULT_MEMORY": "1", "PARTAGE_HAMI_MEMORY_FACTOR": "2", "PARTAGE_VOLCANO_DEFAULT_CORES": "3"}
    assert settings_from(said, "PARTAGE_HAMI_") == VgpuSettings(default_memory_mib=1, memory_factor=2)
    assert settings_from(said, "PARTAGE_VOLCANO_") == VgpuSettings(default_cores=3)
    assert settings_from({}, "PARTAGE_HAMI_") == VgpuSettings()


@pytest.mark.parametrize(
    ("name", "text"),
    [("DEFAULT_MEMORY", "-1"), ("DEFAULT_CORES", "101"), ("DEFAULT_GPUS", "0"), ("MEMORY_FACTOR", "NaN")],
)
def test_a_wrong_setting_is_named_with_what_is_allowed(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"PARTAGE_HAMI_{name} is '{text}'; allowed: a whole number from") as error:
        settings_from({f"PARTAGE_HAMI_{name}": text}, "PARTAGE_HAMI_")
    assert "\n" not in str(error.value)
