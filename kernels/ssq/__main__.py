"""python -m kernels.ssq pack | unpack | verify | info. Prints, and returns the exit code; computes nothing itself."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kernels.errors import KernelError
from kernels.ssq import block, open_container, pack, unpack


def main(argv: Sequence[str]) -> int:
    """Run a verb: 0 well, 1 a checksum does not match, 2 something to mend."""
    options = _parser().parse_args(argv)
    try:
        return int(options.verb(options))
    except KernelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; nothing was left behind", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kernels.ssq", description="Two models' int8 weights side by side.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(name: str, function: Callable[[argparse.Namespace], int], about: str) -> argparse.ArgumentParser:
        found = verbs.add_parser(name, help=about, description=about)
        found.set_defaults(verb=function)
        return found

    packing = verb("pack", _pack, "A.gguf [B.gguf] OUT: one model as identical twins, or two; safetensors too")
    packing.add_argument("files", nargs="+", type=Path, metavar="FILE")
    packing.add_argument("--force", action="store_true", help="write over an OUT that is there")
    unpacking = verb("unpack", _unpack, "IN.ssq A.gguf [B.gguf]: the streams as GGUF files in Q8_0")
    unpacking.add_argument("files", nargs="+", type=Path, metavar="FILE")
    unpacking.add_argument("--force", action="store_true", help="write over files that are there")
    verb("verify", _verify, "compute every checksum").add_argument("file", type=Path)
    info = verb("info", _info, "what is in a file")
    info.add_argument("file", type=Path)
    info.add_argument("--tensors", action="store_true", help="one line a tensor")
    return parser


def _check_outs(outs: Sequence[Path], force: bool) -> None:
    for out in outs:
        if out.exists() and not force:
            raise KernelError(f"{out} is there already; name another file, or add --force to write over it")


def _pack(options: argparse.Namespace) -> int:
    if not 2 <= len(options.files) <= 3:
        raise KernelError(f"pack takes A [B] OUT, not {len(options.files)} files; the last one is written")
    *sources, out = options.files
    _check_outs([out], options.force)
    start = time.perf_counter()
    done = pack(out, *sources)
    seconds = time.perf_counter() - start
    print(
        f"{out}: {done.tensors} tensors ({done.raw_tensors} kept as they were), {done.output_bytes / 1e6:.1f} MB from "
        f"{done.input_bytes / 1e6:.1f} MB in {seconds:.2f} s ({done.input_bytes / seconds / 1e6:.0f} MB/s of input)"
    )
    return 0


def _unpack(options: argparse.Namespace) -> int:
    if not 2 <= len(options.files) <= 3:
        raise KernelError(f"unpack takes IN A [B], not {len(options.files)} files")
    source, *outs = options.files
    _check_outs(outs, options.force)
    unpack(source, outs)
    print("\n".join(f"{out}: stream {name}" for out, name in zip(outs, "AB", strict=False)))
    return 0


def _verify(options: argparse.Namespace) -> int:
    held = open_container(options.file)
    damage = held.damage()
    for sentence in damage:
        print(f"error: {sentence}", file=sys.stderr)
    if not damage:
        print(f"{options.file}: {len(held.tensors)} tensors, every checksum matches")
    return 1 if damage else 0


def _info(options: argparse.Namespace) -> int:
    held = open_container(options.file)
    packed = [tensor for tensor in held.tensors.values() if tensor.kind == "ssq"]
    weights = sum(tensor.weights for tensor in packed)
    size = sum(part.bytes for tensor in packed for part in tensor.parts)
    names = " and ".join(origin.file for origin in held.origins)
    print(f"{options.file}: {'identical twins' if held.identical else 'different twins'} of {names}")
    print(f"{len(packed)} tensors packed, {len(held.tensors) - len(packed)} kept as they were")
    if weights:
        print(
            f"{weights} weights a stream in {size} bytes, {size / weights:.4f} for a weight of both; Q8_0 has "
            f"{block.Q8_BYTES / block.WEIGHTS:.4f} for one"
        )
    for tensor in held.tensors.values() if options.tensors else ():
        print(f"{tensor.kind}  {' x '.join(map(str, tensor.shape))}  {' and '.join(tensor.kinds)}  {tensor.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
