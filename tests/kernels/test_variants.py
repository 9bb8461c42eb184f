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


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_every_plan_fits_the_shared_memory_of_an_h200(fmt):
    from kernels import shares

    for rows, cols in [(17408, 5120), (5120, 17408), (1024, 5120), (248320, 5120), (4096, 14336)]:
        for n in range(1, 9):
            plan = variants.plan(fmt, rows, cols, n)
            held = plan.stages * shares.stage_bytes(fmt.bytes_256, n) + plan.split * 8 * 512 + 512
            assert plan.per_unit * (held + 1024) <= 228 * 1024
            assert 1 <= plan.stages <= 16 and plan.split in (1, 2)


def test_bytes():
    assert variants.weight_bytes("Q6_K", 17408, 5120) == 73113600
    assert variants.weight_bytes("SSQ", 32, 64) == 32 * 2 * 68
    assert variants.activation_bytes(BY_NAME["native_dp4a"], 5120, 2) == 2 * (5120 + 160 * 8)
