"""Commands of profilers, and which of the launches that they saw are those of a decode."""

from __future__ import annotations

import pytest

from kernels import profilers
from kernels.counters import Launch
from kernels.errors import KernelError
from kernels.profilers import PROFILERS


def launches(names: str) -> list[Launch]:
    return [Launch(name, str(place), {"us": float(place)}) for place, name in enumerate(names)]


def test_ncu_counts_between_start_and_stop_and_leaves_clocks_and_caches_alone(tmp_path):
    tool = PROFILERS["ncu"]
    words = profilers.command(tool, "/bin/ncu", tool.passes[0], tmp_path, ["python", "-m", "x"])
    assert words[:3] == ["/bin/ncu", "--profile-from-start", "off"]
    assert words[-3:] == ["python", "-m", "x"]
    for option in ("--clock-control", "--cache-control"):
        assert words[words.index(option) + 1] == "none"
    assert words[words.index("--metrics") + 1].split(",") == list(tool.passes[0])


@pytest.mark.parametrize("name", ["rocprof", "rocprofv3"])
def test_a_pass_of_amd_s_profilers_takes_no_more_counters_than_a_channel_has(name, tmp_path):
    tool = PROFILERS[name]
    for names in tool.passes:
        words = profilers.command(tool, name, names, tmp_path, ["python"])
        told = (tmp_path / "counters.txt").read_text() if name == "rocprof" else " ".join(words)
        assert all(counter in told for counter in names)
    assert [names for names in tool.passes if "FETCH_SIZE" in names] == [("FETCH_SIZE",)]


@pytest.mark.parametrize(
    ("before", "decode", "times"),
    [("xyzq", "abc", 3), ("", "ab", 2), ("ababab", "abc", 3), ("abcz", "aab", 3), ("pppabc", "a", 3)],
)
def test_the_decodes_are_the_longest_tail_that_repeats_itself(before, decode, times):
    seen = launches(before + decode * times) if decode != "a" else launches(before + "z" + "a" * 3)
    found = profilers.of_decodes(seen, times)
    assert ["".join(one.kernel for one in found[place]) for place in range(times)] == [decode] * times
    assert found[-1][-1] is seen[-1]


def test_one_decode_before_those_that_count_is_none_of_them():
    found = profilers.of_decodes(launches("zz" + "abcd" * 4), 3)
    assert [len(one) for one in found] == [4, 4, 4]
    assert found[0][0].dispatch == "6"


def test_launches_that_do_not_end_alike_are_told():
    with pytest.raises(KernelError, match="4 launches do not end with 2 decodes that are alike"):
        profilers.of_decodes(launches("abcd"), 2)


def test_passes_are_joined_by_place_and_only_where_they_are_alike():
    first, second = [Launch("a", "0", {"x": 1.0})], [Launch("a", "7", {"x": 2.0, "y": 3.0})]
    assert [dict(one.values) for one in profilers.joined([first, second])] == [{"x": 1.0, "y": 3.0}]
    with pytest.raises(KernelError, match="did not launch the same kernels"):
        profilers.joined([first, [Launch("b", "7", {})]])


DENIED = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"


def test_a_profiler_without_rights_is_told_from_one_that_fails():
    assert "NVreg_RestrictProfilingToAdminUsers=0" in profilers.denied(f"==PROF== Connected\n{DENIED}\n")
    assert profilers.denied("==ERROR== Failed to find metric regex:^dram$") == ""
    said = "==PROF== Connected\n==ERROR== Failed to find metric dram\n==PROF== Disconnected"
    assert profilers.last_error(said) == "==ERROR== Failed to find metric dram"
    assert profilers.last_error("") == "it printed nothing"
