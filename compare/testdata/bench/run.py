"""Times `tracediff compare --no-isolate` beside a plain reader and two Python scripts on the same dumps, in turns, whole processes.

    python compare/testdata/bench/run.py                          # all of it: 9 GB in the temporary folder, and half an hour
    python compare/testdata/bench/run.py --shapes 100x4 8x32      # tensors x MiB a side, as many as are given
    python compare/testdata/bench/run.py --kinds plain masks nan --peers none
    python compare/testdata/bench/run.py --line                   # time against size

Run it at the root of the repository; it needs Go and torch with safetensors, and room for a pair of dumps in the temporary folder.
They are read before each program that is timed, so that they are in the page cache whatever the one before has pushed out of it: a
script that holds 15 GiB does. Of each program it prints the medians of wall time, of processor time and of the
peak of resident memory. "of-read" is the time of the plain reader over the program's, and "x" the program's over tracediff's.

tracediff computes more than either script: errors by token and channel, units in the last place, both sides' statistics,
non-finite numbers. All elements differ. Of masks (half of the elements are -inf) and of NaN (one of a thousand) no script is timed:
what they print of them is NaN.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
PEERS = ["short.py", "chunked.py"]
NOISE = {"float32": 1e-4, "bfloat16": 1e-2}


def timed(command):
    """Wall seconds, processor seconds and peak MiB of a process. A child begins with the memory of its parent, so this one has no torch."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: they differ
        sys.exit(f"{command}: exit status {process.returncode}: {message.decode()}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def in_turns(commands, runs, before=None):
    """Medians of what each command took, and all of it. The command before, if there is one, runs before each and is not timed."""
    figures = {name: [] for name in commands}
    for run in range(runs + 1):  # the first one warms up
        for name, command in commands.items():
            if before:
                timed(before)
            figure = timed(command)
            if run > 0:
                figures[name].append(figure)
    return {name: [statistics.median(f) for f in zip(*values)] for name, values in figures.items()}, figures


def dumps(folder, tensors, mib, dtype, kind):
    """A pair of dumps, all elements different, and the order of their tensors."""
    paths = [os.path.join(folder, name) for name in ("local", "reference")]
    for path, noise in zip(paths, (NOISE[dtype], 0)):
        subprocess.run([sys.executable, str(HERE / "dump.py"), path, str(tensors), str(mib), dtype, str(noise), kind], check=True)
    return paths


def ordered(folder, tensors):
    """A file that names so many tensors."""
    path = Path(folder) / f"order{tensors}"
    path.write_text("".join(f"t{i}\n" for i in range(tensors)))
    return str(path)


def programs(folder):
    """The two programs, built."""
    tracediff, reader = os.path.join(folder, "tracediff"), os.path.join(folder, "reader")
    subprocess.run(["go", "build", "-o", tracediff, "./cmd/tracediff"], check=True)
    subprocess.run(["go", "build", "-o", reader, str(HERE / "read.go")], check=True)
    return tracediff, reader


def table(folder, args, tracediff, reader):
    for shape in args.shapes:
        tensors, mib = map(int, shape.split("x"))
        for dtype in args.dtypes:
            for kind in args.kinds:
                local, reference = dumps(folder, tensors, mib, dtype, kind)
                size = os.path.getsize(local) + os.path.getsize(reference)
                commands = {
                    "reader": [reader, local, reference],
                    "tracediff": [tracediff, "compare", "--no-isolate", "--order", ordered(folder, tensors), local, reference],
                }
                if kind == "plain":
                    commands |= {name: [sys.executable, str(HERE / name), local, reference] for name in PEERS if name in args.peers}
                medians, figures = in_turns(commands, args.runs, before=commands["reader"])
                print(f"{tensors} tensors of {mib} MiB a side, {dtype}, {kind}: {size / 1e9:.2f} GB, {os.cpu_count()} processors, {args.runs} runs", flush=True)
                for name, (wall, cpu, peak) in medians.items():
                    # Ratios of what ran in the same turn: a machine that is slower for a while is so for both.
                    share = statistics.median(r[0] / f[0] for r, f in zip(figures["reader"], figures[name]))
                    work = statistics.median(r[1] / f[1] for r, f in zip(figures["reader"], figures[name]))
                    times = statistics.median(f[0] / own[0] for f, own in zip(figures[name], figures["tracediff"]))
                    print(
                        f"  {name:11} {wall:8.3f} s {size / wall / 1e9:7.2f} GB/s   {cpu:8.3f} s of processor {peak:7.0f} MiB"
                        f"   of-read {share:5.2f}, by processor time {work:5.2f}   x{times:.2f}",
                        flush=True,
                    )


def line(folder, args, tracediff):
    """Time against size: one pair of dumps, of which more and more is compared."""
    dtype = args.dtypes[0]
    local, reference = dumps(folder, args.most, 4, dtype, "plain")
    counts = [n for n in (1, 3, 10, 30, 100, 300, 1000) if n <= args.most]
    commands = {n: [tracediff, "compare", "--no-isolate", "--order", ordered(folder, n), local, reference] for n in counts}
    medians, _ = in_turns(commands, args.runs)
    size = {n: 2 * 4 * n * (1 << 20) / 1e9 for n in counts}
    # The line that is nearest relative to the times themselves: sums of squares with weights 1/t².
    weights = {n: 1 / medians[n][0] ** 2 for n in counts}
    total = sum(weights.values())
    mean_x = sum(w * size[n] for n, w in weights.items()) / total
    mean_y = sum(w * medians[n][0] for n, w in weights.items()) / total
    slope = sum(w * (size[n] - mean_x) * (medians[n][0] - mean_y) for n, w in weights.items()) / sum(
        w * (size[n] - mean_x) ** 2 for n, w in weights.items()
    )
    start = mean_y - slope * mean_x
    print(f"{dtype}: {start:.3f} s and {slope:.3f} s for each GB of both sides, {args.runs} runs", flush=True)
    for n in counts:
        wall, _, peak = medians[n]
        print(f"  {size[n]:7.3f} GB {wall:8.3f} s {peak:5.0f} MiB   {wall / (start + slope * size[n]) - 1:+.1%} off the line", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=["200x4", "8x512"], help="tensors x MiB of each, a side")
    parser.add_argument("--dtypes", nargs="+", default=list(NOISE), choices=list(NOISE))
    parser.add_argument("--kinds", nargs="+", default=["plain"], choices=["plain", "masks", "nan"])
    parser.add_argument("--peers", nargs="+", default=PEERS, choices=[*PEERS, "none"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--line", action="store_true", help="time against size, of one tensor of 4 MiB a side to --most of them")
    parser.add_argument("--most", type=int, default=1000, help="of --line")
    parser.add_argument("--folder", help="where the dumps are written, in place of the temporary folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        tracediff, reader = programs(folder)
        if args.line:
            line(folder, args, tracediff)
        else:
            table(folder, args, tracediff, reader)


if __name__ == "__main__":
    main()
