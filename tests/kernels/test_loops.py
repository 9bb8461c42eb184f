"""Loops of machine code, counted: a function as clang 19 wrote it, by hand-counted figures, and odd texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.bounds import CARDS, bounds, work_of
from kernels.loops import Loop, count, inner, of_assembly, of_disassembly

ASSEMBLY = (Path(__file__).parent / "gemv_q8_0.s").read_text()
"""gemv_native<Q8_0, 1 vector, 2 rows> for gfx906; its loop stands between .LBB0_2 and the branch back to it."""

DISASSEMBLY = """
libx.co:	file format elf64-amdgpu

Disassembly of section .text:

0000000000001900 <_Z1kPf>:
	s_load_dwordx2 s[0:1], s[4:5], 0x0                         // 000000001900: C0060002 00000000
	v_mov_b32_e32 v2, 0                                        // 000000001908: 7E040280
	global_load_dwordx4 v[4:7], v2, s[0:1]                     // 00000000190C: DC5C8000 04000002
	s_waitcnt vmcnt(0)                                         // 000000001914: BF8C0F70
	v_mul_lo_u32 v3, v4, v5                                    // 000000001918: D2850003 00020B04
	s_cbranch_scc1 65531                                       // 000000001920: BF85FFFB <_Z1kPf+0xc>
	s_endpgm                                                   // 000000001924: BF810000

0000000000001a00 <_Z1eGv>:
	s_endpgm                                                   // 000000001A00: BF810000
"""


def test_the_loop_of_a_kernel_as_a_compiler_wrote_it() -> None:
    (code,) = of_assembly(ASSEMBLY).values()
    loop = inner(code)
    # Two loads of two bytes, three of eight, one of four; the waits are for vmcnt(3), (1) and (0).
    assert loop == Loop(vector=38, dot4=4, loads=6, load_bytes=32, load_clocks=36, waits=3, length=51)
    assert loop.slots == 38


def test_bounds_of_that_loop_on_an_mi50() -> None:
    """By hand: 38 slots for 16 weights of 1.0625 bytes; 60 units of 64 lanes at 1.725 GHz against 1024 GB/s."""
    loop = inner(next(iter(of_assembly(ASSEMBLY).values())))
    work = work_of("gemv_native<0, 1, 2>", loop)
    assert (work.format, work.streams, work.weights) == ("Q8_0", 1, 16)
    found, memory = bounds("gfx906", work, loop, 8), 1.0625 / 1024
    assert found.vector == pytest.approx(38 / 16 / (60 * 64 * 1.725) / memory)
    assert found.loads == pytest.approx(36 / (16 * 64) / (60 * 1.725) / memory)
    assert found.waits == pytest.approx(3 * 320 / 8 / (16 * 64) / (60 * 4 * 1.725) / memory)
    assert bounds("gfx1100", work, loop, 8) is None
    assert CARDS["gfx906"].name == "mi50"


@pytest.mark.parametrize(
    ("kernel", "dot4", "expected"),
    [
        ("gemv_planes<1, 8, 2>", 128, ("Q6_K", 8, 64)),
        ("gemv_native<2, 4, 2>", 16, ("Q5_K", 4, 16)),
        ("flat_dot4<4, 2>", 32, ("int8", 4, 32)),
        ("void mul_mat_vec_q<(ggml_type)14, 1, false, false, false>", 2, ("Q6_K", 1, 8)),
        ("mul_mat_vec_q<(ggml_type)14, 4, false, false, false>", 16, ("Q6_K", 4, 16)),
        ("mul_mat_vec_q<(ggml_type)13, 2, false, false, false>", 24, ("Q5_K", 2, 32)),
        ("mul_mat_vec_q<(ggml_type)14, 4, true, false, false>", 16, None),
        ("mul_mat_vec_q<(ggml_type)2, 4, false, false, false>", 16, None),
        ("softmax_parts", 0, None),
    ],
)
def test_what_a_kernel_multiplies_is_known_by_its_name(kernel, dot4, expected) -> None:
    work = work_of(kernel, Loop(dot4=dot4))
    assert (work and (work.format, work.streams, work.weights)) == expected


def test_a_disassembly_whose_branch_names_an_offset() -> None:
    codes = of_disassembly(DISASSEMBLY)
    assert set(codes) == {"_Z1kPf", "_Z1eGv"} and inner(codes["_Z1eGv"]) is None
    loop = inner(codes["_Z1kPf"])
    assert loop == Loop(vector=1, quarter=1, loads=1, load_bytes=16, load_clocks=16, waits=1, length=4)
    assert loop.slots == 4


def test_the_innermost_loop_that_multiplies_is_meant() -> None:
    code = [("label", "a"), ("do", "global_load_dword v0, v1, off"), ("label", "b"),
            ("do", "v_dot4_i32_i8 v0, v1, v2, v0"),
            ("do", "s_cbranch_scc0 b"), ("label", "c"), ("do", "v_add_u32 v0, v0, v1"), ("do", "s_cbranch_scc0 c"),
            ("do", "s_cbranch_scc0 a"), ("do", "s_cbranch_scc0 ahead"), ("label", "ahead")]  # fmt: skip
    assert inner(code) == Loop(vector=1, dot4=1, length=2)
    assert inner([one for one in code if "dot4" not in one[1]]).loads == 1
    assert inner(code[2:3]) is None and count([]) == Loop()


def test_texts_that_are_no_assembly_have_no_kernels() -> None:
    for text in ("", "s_endpgm\n", "x: no\n\tv_add\n"):
        assert of_assembly(text) == {} and of_disassembly(text) == {}
