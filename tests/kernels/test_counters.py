"""The parser of profilers' tables. All numbers are invented; the forms are those that the tools print."""

from __future__ import annotations

import time

import pytest

from kernels import counters
from kernels.counters import Launch, parse, read_profile, summarize
from kernels.errors import KernelError

V3 = """W001 cannot write sections
"Dispatch_Id","Kernel_Name","Counter_Name","Counter_Value"
1,"mv<q6, 4>(float*, int)","TCC_HIT_sum","120"
1,"mv<q6, 4>(float*, int)","TCC_MISS_sum","1,030"
2,"mv<q6, 1>(float*, int)","TCC_HIT_sum"
"""

NCU_LONG = """==PROF== Connected to process 4711 (/usr/bin/python3.11)
loading "weights: 3, 4
==PROF== Profiling "gemv" - 0: 0%....100% - 9 passes
==WARNING== No source files were imported, check that the target is built with "-lineinfo"
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","4711","python3.11","127.0.0.1","gemv(const unsigned char *, int)","1","7","(32, 4, 1)","(17408, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_read.sum","Mbyte","73.25"
"0","4711","python3.11","127.0.0.1","gemv(const unsigned char *, int)","1","7","(32, 4, 1)","(17408, 1, 1)","0","9.0","Command line profiler metrics","dram__throughput.avg.pct_of_peak_sustained_elapsed","%","26.5"
"0","4711","python3.11","127.0.0.1","gemv(const unsigned char *, int)","1","7","(32, 4, 1)","(17408, 1, 1)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","ns","59,520"
"0","4711","python3.11","127.0.0.1","gemv(const unsigned char *, int)","1","7","(32, 4, 1)","(17408, 1, 1)","0","9.0","Command line profiler metrics","launch__registers_per_thread","register/thread","84"
"0","4711","python3.11","127.0.0.1","gemv(const unsigned char *, int)","1","7","(32, 4, 1)","(17408, 1, 1)","0","9.0","Command line profiler metrics","lts__t_bytes.sum","Gbyte","1.5"
"0","4711","python3.11","127.0.0.1","gemv(const unsigned char *, int)","1","7","(32, 4, 1)","(17408, 1, 1)","0","9.0","Command line profiler metrics","lts__t_sector_hit_rate.pct","%","n/a"
"""  # noqa: E501

NCU_RAW = """==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","gpu__time_duration.sum","lts__t_sector_hit_rate.pct"
"","","","","","","","","","","","Mbyte","us","%"
"0","1","a","h","gemv<4>(int, int)","1","7","(32, 1, 1)","(8, 1, 1)","0","9.0","1,234.5","10.25","61.5"
"1","1","a","h","gemv<8>(int, int)","1","7","(32, 1, 1)","(8, 1, 1)","0","9.0","2,000","20","nan"
"""  # noqa: E501

ROCPROF = """RPL: on '201012_120000' from '/opt/rocm'
Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgp,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj,FETCH_SIZE,WRITE_SIZE,L2CacheHit,DispatchNs,BeginNs,EndNs,CompleteNs
0,"mul_mat_vec_q<(ggml_type)14, 4>(void const*, int) [clone .kd]",0,0,0,1,1,64,64,0,0,63,0,48,64,0x0,0x7f,71484.375,17.0,33.25,1,1000,96000,97000
"""  # noqa: E501

ROCPROFV3 = """"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"
1,1,"Agent 2",1,9,9,64,15,"mv(float*)",64,0,0,28,4,32,"FETCH_SIZE",512.5,5000,8500
1,1,"Agent 2",1,9,9,64,15,"mv(float*)",64,0,0,28,4,32,"WRITE_SIZE",0.0,5000,8500
"""  # noqa: E501


def only(text: str) -> Launch:
    found = parse(text)
    assert not found.rejected
    (launch,) = found.launches
    return launch


def test_a_short_line_is_rejected_by_its_number_and_the_rest_read() -> None:
    found = parse(V3)
    assert [(row.line, row.reason) for row in found.rejected] == [(5, "has 3 fields, the header has 4")]
    (launch,) = found.launches
    assert launch.kernel == "mv<q6, 4>(float*, int)"
    assert launch.values == {"TCC_HIT_sum": 120, "TCC_MISS_sum": 1030}
    assert summarize(launch).l2_hit_rate == pytest.approx(120 / 1150)


def test_a_file_with_such_a_line_is_refused_as_a_whole(tmp_path) -> None:
    (tmp_path / "c.csv").write_text(V3)
    with pytest.raises(KernelError, match=r"c\.csv, line 5: has 3 fields, the header has 4"):
        read_profile(tmp_path / "c.csv")


def test_ncu_a_row_a_metric() -> None:
    launch = only(NCU_LONG)
    told = summarize(launch)
    assert launch.kernel == "gemv(const unsigned char *, int)"
    assert told.dram_bytes == pytest.approx(73.25e6)
    assert told.us == pytest.approx(59.52)
    assert told.share_of_peak == pytest.approx(0.265)
    assert (told.registers, told.l2_bytes) == (84, 1.5e9)
    assert told.l2_hit_rate is None
    assert parse(NCU_LONG).missing == ("lts__t_sector_hit_rate.pct",)


def test_ncu_raw_page_has_units_in_a_line_of_their_own() -> None:
    found = parse(NCU_RAW)
    assert not found.rejected
    first, second = (summarize(launch) for launch in found.launches)
    assert (first.dram_bytes, first.us, first.l2_hit_rate) == (1234.5e6, 10.25, 0.615)
    assert (second.dram_bytes, second.us, second.l2_hit_rate) == (2000e6, 20, None)


def test_rocprof_wide() -> None:
    told = summarize(only(ROCPROF))
    assert told.dram_bytes == 71484.375 * 1024
    assert (told.us, told.l2_hit_rate, told.registers) == (95.0, 0.3325, 63)
    assert told.l2_bytes is None


def test_rocprofv3_long_with_an_agent_in_words() -> None:
    told = summarize(only(ROCPROFV3))
    assert (told.dram_bytes, told.us, told.registers) == (512.5 * 1024, 3.5, 28)


def test_a_counter_that_is_zero_everywhere_is_missing_and_one_that_is_zero_once_is_not() -> None:
    found = parse(
        "Kernel_Name,Dispatch_ID,TCC_HIT_sum,TCC_MISS_sum,TCC_REQ_sum\n" "a,1,17,0,0\n" "a,2,0,0,0\n"
    )  # fmt: skip
    assert found.missing == ("TCC_MISS_sum", "TCC_REQ_sum")
    assert [launch.values for launch in found.launches] == [{"TCC_HIT_sum": 17}, {"TCC_HIT_sum": 0}]
    # Without misses, 17 hits are no hit rate of 100 %.
    assert summarize(found.launches[0]).l2_hit_rate is None


def test_records_wider_or_narrower_than_the_header_are_rejected() -> None:
    wide = ROCPROF.replace(",96000,97000", ",96000")
    assert [(row.line, row.reason) for row in parse(wide).rejected] == [(3, "has 23 fields, the header has 24")]
    assert "25 fields" in parse(ROCPROF.replace("97000", "97000,1")).rejected[0].reason


def test_a_column_of_nothing_is_missing() -> None:
    found = parse("Kernel_Name,Index,A,B\nk,0,nan,1\nk,1,,2\n")
    assert found.missing == ("A",)
    assert [launch.values for launch in found.launches] == [{"B": 1}, {"B": 2}]


def test_launches_without_a_number_end_where_a_counter_returns() -> None:
    text = "Kernel_Name,Counter_Name,Counter_Value\nk,A,1\nk,B,2\nk,A,3\nj,A,4\n"
    assert [(launch.kernel, dict(launch.values)) for launch in parse(text).launches] == [
        ("k", {"A": 1, "B": 2}), ("k", {"A": 3}), ("j", {"A": 4}),
    ]  # fmt: skip


def test_two_values_of_one_counter_in_one_launch_are_rejected() -> None:
    text = "Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,A,1\n1,k,A,1\n1,k,A,2\n"
    assert [(row.line, row.reason) for row in parse(text).rejected] == [
        (4, "has A = 2, an earlier line of the same launch has 1")
    ]


def test_one_word_for_a_rate_and_a_share_is_two_counters() -> None:
    text = (
        "ID,Kernel Name,Section Name,Metric Name,Metric Unit,Metric Value\n"
        "0,k,S,Memory Throughput,%,26\n0,k,M,Memory Throughput,Gbyte/second,1230\n"
    )
    assert only(text).values == {"Memory Throughput": 26, "Memory Throughput [Gbyte/second]": 1230}


@pytest.mark.parametrize("value", ["1,03", "12,34,567", "1.234.567", "abc", "1e999", '"unclosed'])
def test_what_is_no_number_is_rejected(value: str) -> None:
    cell = value if value.startswith('"') else f'"{value}"'
    found = parse(f"Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,A,{cell}\n1,k,B,5\n")
    assert [row.line for row in found.rejected] == [2]
    assert found.launches[0].values == {"B": 5}


@pytest.mark.parametrize(("text", "value"), [("1,234,567.5", 1234567.5), ("1e3", 1000), (".5", 0.5), ("-7", -7)])
def test_numbers(text: str, value: float) -> None:
    assert only(f'Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,A,"{text}"\n').values == {"A": value}


@pytest.mark.parametrize("text", ["", "\n\n", "==ERROR== no permission to access counters\n", "a,b,c\n1,2,3\n"])
def test_a_file_without_a_table_says_so(tmp_path, text: str) -> None:
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(KernelError, match=r"c\.csv: no line is the header"):
        read_profile(tmp_path / "c.csv")


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path) -> None:
    (tmp_path / "c.csv").write_bytes(("\ufeff" + ROCPROFV3).replace("\n", "\r\n").encode())
    assert summarize(read_profile(tmp_path / "c.csv").launches[0]).us == 3.5


HEADER = "Kernel Name,Metric Name,Metric Value\n"
CUT = "".join(f"k{number},a{number},1\n" for number in range(2 + counters.MOST_FIELDS // 3))


@pytest.mark.parametrize(
    ("text", "said"),
    [(HEADER + CUT, "more than 300000 fields; profile fewer kernels"),
     ("Name," + "c," * 400_000 + "c\n" + "1," * 400_000 + "1,k\n", "more than 300000 fields"),
     ("name1,y,z\n" * 1_500_000, "no line is the header"), ("name1," * 2_500_000, "no line is the header"),
     ("x\n" * (counters.MOST_BEFORE + 1) + HEADER + "k,a,1\n", "no line is the header")],
    ids=["lines", "columns", "short lines", "one line", "far"],
)  # fmt: skip
def test_a_large_table_is_refused_soon(text: str, said: str) -> None:
    began = time.process_time()
    with pytest.raises(KernelError, match=said):
        parse(text)
    assert time.process_time() - began < 5


def test_counters_of_many_kernels_are_gathered_in_one_pass() -> None:
    """Each kernel with a counter of its own: a look at all kernels for each counter would take hours."""
    began = time.process_time()
    found = parse(HEADER + "".join(f"k{number},a{number},{number % 2}\n" for number in range(60_000)))
    assert (len(found.launches), len(found.missing)) == (60_000, 30_000)
    assert time.process_time() - began < 10
