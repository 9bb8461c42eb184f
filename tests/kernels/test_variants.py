"""What cannot run says why, naming the number."""

import pytest

from kernels import variants
from kernels.layouts import FORMATS
from kernels.variants import BY_NAME, VARIANTS, Case


def case(name, fmt="Q8_0", streams=1, rows=17408, cols=5120):
    return Case(BY_NAME[name], fmt, streams, rows, cols)


@pytest.mark.parametrize(
    "asked,arch,reason",
    [
        (case("packed_mma", "Q6_K"), "gfx906", "needs int8 matrix units .* gfx906"),
        (case("packed_mma", "Q6_K", 9), "sm_90", "takes 1 to 8 activation vectors, not 9"),
        (case("packed_mma", rows=5000), "sm_90", "multiple of 16 and columns of 256, not 5000 x 5120"),
        (case("native_dp4a", cols=5000), "gfx906", "columns of 256, not 17408 x 5000"),
        (case("flat_dp4a", "Q6_K"), "gfx906", "no kernel for Q6_K; it takes Q8_0"),
        (case("flat_dp4a", streams=5), "sm_90", "takes 1 or 2 or 3 or 4 or 8 activation vectors, not 5"),
        (case("flat_interleaved"), "sm_90", "takes 4 activation vectors, not 1"),
    ],
)
def test_reasons(asked, arch, reason):
    assert reason_matches(variants.can_run(asked, arch), reason)


def reason_matches(text, pattern):
    import re

    return text is not None and re.search(pattern, text) is not None


def test_gfx906_runs_everything_but_the_matrix_units():
    able = {v.name for v in VARIANTS if not variants.can_run(Case(v, v.formats[0], v.streams[0], 4096, 4096), "gfx906")}
    assert able == {v.name for v in VARIANTS} - {"packed_mma"}


def test_names_are_unique():
    assert len(BY_NAME) == len(VARIANTS)


@pytest.mark.parametrize(
    "rows,cols,streams,expected",
    [
        (17408, 5120, 4, 2),
        (5120, 17408, 4, 6),
        (5120, 17408, 1, 6),
        (1024, 5120, 8, 10),
        (248320, 5120, 1, 2),
        (16, 256, 1, 1),
    ],
)
def test_all_blocks_of_a_packed_matrix_run_at_once_where_they_fit(rows, cols, streams, expected):
    case = variants.Case(BY_NAME["packed_mma"], "Q5_K", streams, rows, cols)
    assert variants.warps(case, 132) == expected


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_block_of_the_packed_kernel_has_1_to_16_warps_and_none_is_idle(fmt):
    for rows in (16, 1040, 4096, 128256):
        for cols in (256, 768, 5120, 17408):
            for units in (1, 60, 132):
                n = variants.warps(variants.Case(BY_NAME["packed_mma"], fmt, 1, rows, cols), units)
                assert 1 <= n <= min(16, cols // 256)


def test_bytes():
    assert variants.weight_bytes("Q6_K", 17408, 5120) == 73113600
    assert variants.weight_bytes("SSQ", 32, 64) == 32 * 2 * 68
    assert variants.activation_bytes(BY_NAME["native_dp4a"], 5120, 2) == 2 * (5120 + 160 * 8)
