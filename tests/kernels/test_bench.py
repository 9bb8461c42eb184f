"""Bad input is one sentence and exit code 2; no GPU is needed to hear it."""

import pytest

from kernels import bench
from kernels.errors import KernelError


@pytest.fixture
def no_gpu(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PTI_KERNELS_BUILD", str(tmp_path))


@pytest.mark.parametrize(
    "argv,sentence",
    [
        ([], "no GPU was found"),
        (["--arch", "sm_90"], "nvcc is not on the PATH"),
        (["--arch", "mi50"], "architecture 'mi50' is not one of"),
        (["--variants", "packed_mmq"], "variant 'packed_mmq' is not known"),
        (["--formats", "Q4_0"], "format 'Q4_0' is not known"),
        (["--caches", "hot"], "cache state 'hot' is not known"),
        (["--shapes", "17408"], "ROWSxCOLS, separated by commas, not '17408'"),
        (["--shapes", "0x256"], "ROWSxCOLS"),
        (["--streams", "two"], "streams are whole numbers"),
        (["--blocks", "0"], "blocks"),
    ],
)
def test_sentences(argv, sentence, no_gpu, capsys):
    assert bench.main(argv) == 2
    out = capsys.readouterr()
    assert sentence in out.err and out.err.count("\n") == 1 and not out.out


def test_cases_take_the_streams_that_the_variant_has():
    cases = bench.cases_of("Q8_0", 1024, 512, ["packed_mma", "flat_interleaved", "weight_only"], [1, 8])
    assert [(c.variant.name, c.streams) for c in cases] == [
        ("packed_mma", 1),
        ("packed_mma", 8),
        ("flat_interleaved", 4),
        ("weight_only", 1),
    ]
    assert bench.cases_of("Q6_K", 1024, 512, ["flat_vector"], [1]) == []


def test_shapes():
    assert bench.shapes_of("16x256,4096x14336") == [(16, 256), (4096, 14336)]
    with pytest.raises(KernelError):
        bench.shapes_of("16x256x2")
