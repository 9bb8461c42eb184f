"""Tables of kernels: times, counters of profilers, what SSQ packing saves, and what compilers say."""

from __future__ import annotations

from bench.judge.columns import BYTES, RATIO, SHARE, column, table
from bench.judge.tables.base import END, Fact

NAN = float("nan")


@table
class KernelFact(Fact):
    """A fact about a kernel on a GPU."""

    gpu: str = column("graphics processor", words="GPU", place=END, default="")
    compiler: str = column("compiler", place=END, default="")
    source_hash: str = column("hash of the kernels' sources", words="sources", place=END, default="")


@table
class Kernel(KernelFact):
    """Time of one kernel on one matrix. One whose result was not found right has none."""

    variant: str = column("kernel")
    format: str = column("format of the weights")
    streams: int = column("activation vectors of one reading of the weights", words="N")
    rows: int = column("rows of the matrix")
    cols: int = column("columns of the matrix")
    us: float = column("time of one launch, median over blocks", "us", decimals=2, scaled_by="share_of_read_peak",
                       default=NAN)  # fmt: skip
    gb_s: float = column("bytes read over time", "GB/s", decimals=0, words="GB/s", metric="kernel",
                         scaled_by="share_of_read_peak", default=NAN)  # fmt: skip
    share_of_read_peak: float = column("time of a plain read of the same bytes over the kernel's", SHARE, decimals=1,
                                       words="share of the read ceiling", interval="share_of_read_peak",
                                       default=NAN)  # fmt: skip
    relative_cost: float = column("time over that with one stream", RATIO, decimals=2,
                                  words="cost against its own N=1", interval="relative_cost", default=NAN)  # fmt: skip
    ratio_to_llama_cpp: float = column("time of llama.cpp's kernel over its", RATIO, decimals=2,
                                       words="llama.cpp's time / its", interval="ratio_to_llama_cpp",
                                       default=NAN)  # fmt: skip
    max_rel_err: float = column("largest relative error against float64", words="largest error", default=NAN)
    cache: str = column("`cold`: nothing of the weights is in the cache before; `warm`", default="")
    layout: str = column("order of the weights: that of the file, or repacked", default="")
    status: str = column("ok, failed or unsupported")
    reason: str = column("why it has no time", default="")
    fastest: bool = column("whether no product of its format, shape, cache and streams is faster", default=False)
    blocks: int | None = column("blocks of paired launches", default=None)
    bytes_per_weight: float = column("bytes of a weight in that layout", BYTES, decimals=4, default=NAN)
    weight_bytes: float = column("bytes of the matrix", BYTES, default=NAN)
    bytes_read: float = column("bytes that one launch has to read", BYTES, default=NAN)
    bytes_per_multiply: float = column("bytes of weights for each useful multiply", BYTES, default=NAN)
    tolerance: float = column("relative error that is allowed", default=NAN)
    cost_over_best_single: float = column("time over that of the fastest kernel with one stream", RATIO, decimals=2,
                                          words="against the fastest N=1", interval="cost_over_best_single",
                                          default=NAN)  # fmt: skip
    llama_cpp_relative_cost: float = column("time of llama.cpp's kernel over its own with one stream", RATIO,
                                            interval="llama_cpp_relative_cost", default=NAN)  # fmt: skip
    llama_cpp_share: float = column("time of a plain read over that of llama.cpp's kernel", SHARE,
                                    interval="llama_cpp_share", default=NAN)  # fmt: skip
    peer_us: float = column("time of llama.cpp's kernel", "us", default=NAN)
    read_gb_s: float = column("rate of the plain read", "GB/s", default=NAN)
    copy_gb_s: float = column("rate of a copy", "GB/s", default=NAN)
    share_of_chip_peak: float = column("`gb_s` over the chip's data sheet", SHARE, default=NAN)
    gflop_s: float = column("useful operations a second, two a weight and stream", "GFLOP/s", default=NAN)
    share_of_read_peak_low: float = column("lower end of its interval", SHARE, default=NAN)
    share_of_read_peak_high: float = column("upper end of its interval", SHARE, default=NAN)
    relative_cost_low: float = column("lower end of its interval", RATIO, default=NAN)
    relative_cost_high: float = column("upper end of its interval", RATIO, default=NAN)
    ratio_to_llama_cpp_low: float = column("lower end of its interval", RATIO, default=NAN)
    ratio_to_llama_cpp_high: float = column("upper end of its interval", RATIO, default=NAN)
    cost_over_best_single_low: float = column("lower end of its interval", RATIO, default=NAN)
    cost_over_best_single_high: float = column("upper end of its interval", RATIO, default=NAN)
    llama_cpp_relative_cost_low: float = column("lower end of its interval", RATIO, default=NAN)
    llama_cpp_relative_cost_high: float = column("upper end of its interval", RATIO, default=NAN)
    llama_cpp_share_low: float = column("lower end of its interval", SHARE, default=NAN)
    llama_cpp_share_high: float = column("upper end of its interval", SHARE, default=NAN)
    void: bool = column("whether it is above a ceiling, so that it counts for nothing", place=END, default=False)
    void_reason: str = column("which", place=END, default="")


@table
class Counter(KernelFact):
    """What a profiler counted: for one launch of a kernel, or for all launches of a class in one decode of a model.

    A counter that was not collected is missing, never 0.
    """

    kernel: str = column("kernel, as the profiler names it; of a decode a class of kernels, or a part of the whole")
    width: int = column("activation vectors; of a decode its sequences", words="N")
    dram_bytes: float = column("read from memory", BYTES, default=NAN)
    l2_bytes: float = column("through the L2 cache, of any origin", BYTES, default=NAN)
    l2_hit_rate: float = column("hits of the L2 cache", SHARE, decimals=1, words="L2 hits", default=NAN)
    share_of_peak: float = column("memory throughput over the chip's", SHARE, decimals=1, words="share of peak",
                                  default=NAN)  # fmt: skip
    us: float = column("time of the launch, or of all of them in the decode", "us", decimals=2, default=NAN)
    of: str = column("what was counted: a `launch`, or a `decode`", default="launch")
    model: str = column("of a decode: name of the model", default="")
    variant: str = column("kernel, as this project names it")
    format: str = column("format of the weights")
    streams: int = column("activation vectors")
    rows: int | None = column("rows of the matrix", default=None)
    cols: int | None = column("columns of the matrix", default=None)
    weight_bytes: float = column("bytes of the matrix; of a decode, of all weights that it needs", BYTES, default=NAN)
    dram_write_bytes: float = column("written to memory", BYTES, default=NAN)
    dram_over_weights: float = column("`dram_bytes` over the weights", RATIO, decimals=2, words="over the weights",
                                      default=NAN)  # fmt: skip
    other_l2_over_weights: float = column("L2 traffic but one reading of the weights, over the weights", RATIO,
                                          decimals=2, words="L2 beside the weights, of the weights",
                                          default=NAN)  # fmt: skip
    registers: float = column("registers a thread", default=NAN)
    launches: int | None = column("launches that the medians are over; of a decode, those in it", default=None)
    share_of_time: float = column("of a decode: time over that of all its kernels", SHARE, decimals=1,
                                  words="of the kernels' time", default=NAN)  # fmt: skip
    share_of_products: float = column("of a decode: time over that of all products with matrices", SHARE, decimals=1,
                                      default=NAN)  # fmt: skip
    dram_bytes_per_token: float = column("of a decode: `dram_bytes` over its sequences", BYTES, default=NAN)
    l2_bytes_per_token: float = column("of a decode: `l2_bytes` over its sequences", BYTES, default=NAN)
    gb_s: float = column("of a decode: bytes from and to memory over the kernels' time", "GB/s", decimals=0,
                         words="GB/s", default=NAN)  # fmt: skip
    share_of_copy: float = column("the same over what a copy inside the device moves", SHARE, decimals=1,
                                  words="of a copy", default=NAN)  # fmt: skip
    helper: bool = column("whether the case launches it beside the kernel that it is about", default=False)
    missing: str = column("counters that were asked for and not collected", default="")
    tool: str = column("profiler")
    void: bool = column("whether its file cannot be read, or a share is above 100 %", place=END, default=False)
    void_reason: str = column("which", words="void", place=END, default="")


@table
class Ssq(KernelFact):
    """Bytes for each useful multiply of four ways to serve two streams, computed, and counted where they were."""

    layout: str = column("way of serving them")
    what: str = column("the same in words", words="two streams from")
    twins: str = column("whether both streams are one model: identical or different", words="models")
    streams: int = column("streams", default=2)
    rows: int = column("rows of the matrix")
    cols: int = column("columns of the matrix")
    weight_bytes: float = column("bytes of the weights", BYTES)
    bytes_per_multiply: float = column("computed", BYTES, decimals=4, words="bytes a multiply, computed")
    bytes_over_one_model: float = column("over the bytes of one model in Q8_0", RATIO, decimals=2,
                                         words="bytes of one model, computed")  # fmt: skip
    variant: str = column("fastest kernel of that way", words="kernel", default="")
    evidence: str = column("measured, or derived from one of two matrices")
    dram_bytes: float = column("read from memory, as a profiler counted", BYTES, default=NAN)
    measured_bytes_per_multiply: float = column("the same for each useful multiply", BYTES, decimals=4,
                                                words="counted", default=NAN)  # fmt: skip
    measured_over_one_model: float = column("the same over one model in Q8_0", RATIO, decimals=2, words="counted",
                                            default=NAN)  # fmt: skip
    us: float = column("time", "us", decimals=2, default=NAN)
    us_over_one_model: float = column("time over that of one stream", RATIO, decimals=2,
                                      words="of one stream's time", interval="us_over_one_model",
                                      default=NAN)  # fmt: skip
    us_over_one_model_low: float = column("lower end of its interval; none for a derived one", RATIO, default=NAN)
    us_over_one_model_high: float = column("upper end of its interval", RATIO, default=NAN)


@table
class KernelResource(KernelFact):
    """What a compiler says of a kernel, with no GPU. As text: a compiler that says nothing leaves it empty."""

    arch: str = column("architecture")
    kernel: str = column("kernel")
    vgprs: str = column("vector registers", default="")
    sgprs: str = column("scalar registers", default="")
    lds_bytes: str = column("shared memory", BYTES, default="")
    spilled: str = column("spilled registers, or bytes on NVIDIA", default="")
    waves_per_simd: str = column("waves that a SIMD holds at once", default="")
    agprs: str = column("accumulator registers", default="")
    scratch_bytes: str = column("memory of a thread", BYTES, default="")
    source: str = column("source file", default="")
    status: str = column("ok, failed or unsupported", default="")
    reason: str = column("why there is nothing", default="")
    compiler: str = column("compiler and its version", default="")
    format: str = column("format of the weights", default="")
    streams: str = column("activation vectors", default="")
    weights: str = column("weights that a lane takes in a turn of the inner loop", default="")
    vector: str = column("vector instructions of a turn", default="")
    quarter: str = column("those at a quarter of the rate", default="")
    dot4: str = column("products of four bytes of a turn", default="")
    loads: str = column("loads of a turn", default="")
    load_bytes: str = column("bytes that a lane loads a turn", BYTES, default="")
    waits: str = column("waits for loads of a turn", default="")
    slots_a_weight: str = column("slots of the vector unit a weight", default="")
    card: str = column("card of the static bounds", default="")
    vector_bound: str = column("static bound: vector work over memory's time; compiled, not run", default="",
                               words="vector work / memory")  # fmt: skip
    loads_bound: str = column("static bound: time of the address unit over memory's", default="",
                              words="address unit / memory")  # fmt: skip
    waits_bound: str = column("time of the waits, if each takes 320 clocks, over memory's", default="",
                              words="waits / memory")  # fmt: skip
