"""Records the curves of notebooks/data on a machine with an H200: every lesson's, and the CPU's beside them.

usage: python tools/record_h200.py record OUT [--seconds S] [--only ...] [--dry]     on that machine: OUT/curves.jsonl
       python tools/record_h200.py unpack CURVES                                    into notebooks/data

A recording stops by itself after S seconds (250), between two sweeps; what it has by then is whole. --dry counts in the
lens instead, and measures the CPU on small arrays: it tries the script out where there is no GPU.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import gpumem  # noqa: E402 - from the source tree, wherever this runs
from gpumem.sweep_result import Sweep  # noqa: E402

DATA = ROOT / "notebooks" / "data"
# Name, lesson, axis, values, options; the most telling first, in case time runs out.
GPU = [
    ("stride", "read", "stride", "1:64", {"repeat": 7}),
    ("offset", "read", "offset", "0:33", {"repeat": 7}),
    ("banks", "banks", "stride", "1:33", {"repeat": 7}),
    ("width", "copy", "width", None, {"repeat": 7}),
    ("flight", "copy", "flight", None, {"repeat": 7}),
    ("transpose-float32", "transpose", "size", "64K:4G", {"repeat": 5, "peers": ["torch"]}),
    ("copy-float32", "copy", "size", "64K:4G", {"repeat": 5, "peers": ["torch"]}),
    ("reduce-float32", "reduce", "size", "64K:4G", {"repeat": 5}),
    ("cache-float32", "cache", "size", "1M:1G:x4", {"repeat": 5}),
    ("layout-float32", "layout", "size", "256K:1G:x4", {"repeat": 5}),
    ("walk2d-float32", "walk2d", "size", "256K:1G:x4", {"repeat": 5}),
    ("read-float32", "read", "size", "256K:1G:x4", {"repeat": 5}),
    ("transpose-uint8", "transpose", "size", "64K:1G:x4", {"repeat": 5, "peers": ["torch"], "dtype": "uint8"}),
    ("transpose-int16", "transpose", "size", "64K:1G:x4", {"repeat": 5, "peers": ["torch"], "dtype": "int16"}),
    ("transpose-float64", "transpose", "size", "64K:1G:x4", {"repeat": 5, "peers": ["torch"], "dtype": "float64"}),
    ("reduce-int32", "reduce", "size", "64K:1G:x4", {"repeat": 5, "dtype": "int32"}),
    ("reduce-float64", "reduce", "size", "64K:1G:x4", {"repeat": 5, "dtype": "float64"}),
    ("copy-uint8", "copy", "size", "64K:1G:x4", {"repeat": 5, "dtype": "uint8"}),
]
CPU = [
    ("threads-copy", "copy", "threads", None, {"shape": 1 << 26, "stages": "tuned"}),
    ("threads-transpose", "transpose", "threads", None, {"shape": (8192, 8192), "stages": "tuned"}),
    ("threads-reduce", "reduce", "threads", None, {"shape": 1 << 26, "stages": "tuned"}),
    ("transpose-float32", "transpose", "size", "4K:256M:x4", {"peers": ["numpy"]}),
    ("copy-float32", "copy", "size", "4K:1G:x4", {"peers": ["numpy"]}),
    ("reduce-float32", "reduce", "size", "4K:1G:x4", {"peers": ["numpy"]}),
    ("transpose-uint8", "transpose", "size", "4K:64M:x4", {"peers": ["numpy"], "dtype": "uint8"}),
    ("stride", "copy", "stride", "1,2,3,4,6,8,12,16,24,32,48,64", {"shape": 1 << 25, "stages": ["naive", "tuned"]}),
    ("offset", "copy", "offset", "0:16", {"shape": 1 << 25, "stages": ["simd", "tuned"]}),
]


PATTERNS = (
    *(("ld", 4, apart) for apart in (4, 32, 64, 128, 256, 1024)),
    *(("ld", 16, apart) for apart in (16, 128)),
    *(("st", 4, apart) for apart in (4, 8, 16, 32, 64, 128, 256, 1024, 4096)),
    *(("st", 16, apart) for apart in (16, 32, 128)),
)
PROBE = r"""
extern "C" __global__ void probe(char *x, unsigned *out, unsigned mask, int rounds)
{
    unsigned lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, sum = 0;
    unsigned warps = gridDim.x * blockDim.x / 32;
#pragma unroll 8
    for (int r = 0; r < rounds; r++) {
        unsigned long long byte = ((unsigned long long)(r * warps + warp) * 32 + lane) * APART;
        TYPE *at = (TYPE *)(x + (byte & mask) + byte / (mask + 1ull) * 32 % APART); /* other sectors the next time */
        ACCESS;
    }
    if (sum == 12345) *out = sum;
}
"""
ACCESSES = {
    ("ld", 4): ("unsigned", 'unsigned v; asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(at)); sum += v'),
    ("ld", 16): (
        "uint4",
        'uint4 v; asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" '
        ': "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at)); sum += v.x ^ v.y ^ v.z ^ v.w',
    ),
    ("st", 4): ("unsigned", "*at = r"),
    ("st", 16): ("uint4", "*at = make_uint4(r, r, r, r)"),
}


def l2_speed():
    """What the second-level cache hands out and takes: warps' accesses a second to 16 MiB of it, by pattern.

    A row: load or store, bytes of a lane, bytes from one lane to the next, accesses of a warp, seconds.
    """
    import cupy

    size, rounds, rows = 16 << 20, 256, []
    x, out = cupy.zeros(size, "u1"), cupy.zeros(1, "u4")
    blocks, threads = 8 * cupy.cuda.Device().attributes["MultiProcessorCount"], 256
    for op, width, apart in PATTERNS:
        kind, access = ACCESSES[op, width]
        source = PROBE.replace("TYPE", kind).replace("APART", f"{apart}u").replace("ACCESS", access)
        function = cupy.RawKernel(source, "probe")
        arguments = (x, out, cupy.uint32(size - 1), cupy.int32(rounds))
        samples = []
        for _ in range(6):
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            first.record()
            function((blocks,), (threads,), arguments)
            last.record()
            last.synchronize()
            samples.append(cupy.cuda.get_elapsed_time(first, last) / 1e3)
        taken = [float(f"{s:.5g}") for s in samples[1:]]
        rows.append(
            {"op": op, "bytes": width, "apart": apart, "accesses": blocks * threads // 32 * rounds, "seconds": taken}
        )
    return rows


def warm_up(seconds=1.0):
    """Brings the clocks up."""
    import torch

    x, until = torch.empty(1 << 28, device="cuda"), time.monotonic() + seconds
    while time.monotonic() < until:
        x.add_(1)
        torch.cuda.synchronize()


def record(out, seconds, dry, only):
    began, commit = time.monotonic(), os.environ.get("GPUMEM_COMMIT")
    out.mkdir(parents=True, exist_ok=True)
    with (out / "curves.jsonl").open("w") as file:

        def write(row):
            file.write(json.dumps(row) + "\n")
            file.flush()

        if not dry:
            warm_up()
            try:
                from gpumem.devices import of_this_machine

                write({"name": "device", "device": of_this_machine().to_dict(), "l2": l2_speed()})
            except Exception as error:  # the curves matter more
                print(f"l2: {type(error).__name__}: {error}", flush=True)
        for place, rows in (("h200", GPU), ("cpu", CPU)):
            for name, lesson, over, values, options in rows:
                if only and f"{place}/{name}" not in only:
                    continue
                spent = time.monotonic() - began
                if spent > seconds - 10:
                    print(f"{place}/{name}: no time left", flush=True)
                    continue
                if dry:
                    options, values = tried(place, over, values, options)
                device = "cpu" if place == "cpu" else "sim" if dry else "cuda"
                try:
                    done = gpumem.sweep(lesson, over, values, device=device, progress=False, **{"repeat": 3, **options})
                except Exception as error:
                    print(f"{place}/{name}: {type(error).__name__}: {error}", flush=True)
                    continue
                if commit:
                    done = replace(done, environment={**done.environment, "commit": commit})
                write({"name": name, "place": place, "sweep": done.to_dict()})
                took = time.monotonic() - began - spent
                print(
                    f"{place}/{name}: {len(done.points)} points in {took:.1f} s, {spent + took:.0f} s in all",
                    flush=True,
                )


def tried(place, over, values, options):
    """The same on small arrays."""
    options = {**options, "repeat": 3}
    if place == "h200":
        options.pop("peers", None)
    if over == "size":
        return options, "64K:256K"
    options["shape"] = (256, 256) if isinstance(options.get("shape"), tuple) else 1 << 14
    return options, {"stride": "1,2,33", "offset": "0:3"}.get(over, values)


def unpack(path):
    """Sweeps into their files, the device's figures into one of its own."""
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row["name"] == "device":
            (DATA / "h200" / "device.json").write_text(json.dumps(row, indent=1) + "\n")
            continue
        to = DATA / row["place"] / f"sweep-{row['name']}.json"
        to.write_text(Sweep.from_dict(row["sweep"]).to_json() + "\n")
        print(to.relative_to(ROOT), to.stat().st_size)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("record", "unpack"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--seconds", type=float, default=250)
    parser.add_argument("--only", nargs="*", metavar="PLACE/NAME", help="these sweeps; device for its cache alone")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    if options.what == "unpack":
        unpack(options.path)
    else:
        record(options.path, options.seconds, options.dry, options.only)


main()
