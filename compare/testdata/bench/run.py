"""Times `tracediff compare` beside two Python scripts that compare the same dumps, in turns, whole processes.

    python compare/testdata/bench/run.py [--tensors 200] [--mib 4] [--dtype float32] [--runs 3]

Run it at the root of the repository; it needs Go, torch and safetensors, and room for the dumps in the temporary folder,
which are in the page cache when anything is timed. It prints the medians of wall time and of the peak of resident memory,
and their ratios to tracediff's.

tracediff computes more than either script: errors by token and channel, units in the last place, both sides' statistics,
non-finite numbers. All elements differ.
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


def timed(command):
    """Wall seconds and peak MiB of a process. A child begins with the memory of its parent, so this one has no torch."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: they differ
        sys.exit(f"{command}: exit status {process.returncode}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tensors", type=int, default=200)
    parser.add_argument("--mib", type=int, default=4, help="of each tensor")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program, local, reference, order = (os.path.join(folder, n) for n in ("tracediff", "local", "reference", "order"))
        subprocess.run(["go", "build", "-o", program, "./cmd/tracediff"], check=True)
        noise = {"float32": 1e-4, "bfloat16": 1e-2}[args.dtype]
        for path, size in (reference, 0), (local, noise):
            dump = [str(HERE / "dump.py"), path, str(args.tensors), str(args.mib), args.dtype, str(size)]
            subprocess.run([sys.executable, *dump], check=True)
        Path(order).write_text("".join(f"t{i}\n" for i in range(args.tensors)))
        size = os.path.getsize(local) + os.path.getsize(reference)
        commands = {
            "tracediff": [program, "compare", "--order", order, local, reference],
            "short.py": [sys.executable, str(HERE / "short.py"), local, reference],
            "chunked.py": [sys.executable, str(HERE / "chunked.py"), local, reference],
        }
        figures = {name: [] for name in commands}
        for run in range(args.runs + 1):  # the first one warms up
            for name, command in commands.items():
                figure = timed(command)
                if run > 0:
                    figures[name].append(figure)
        medians = {name: [statistics.median(f) for f in zip(*values)] for name, values in figures.items()}
        print(f"{args.tensors} tensors of {args.mib} MiB a side, {args.dtype}, {size / 1e9:.2f} GB in all, {os.cpu_count()} processors")
        for name, (wall, peak) in medians.items():
            own = medians["tracediff"]
            print(f"{name:12} {wall:8.2f} s {size / wall / 1e9:8.2f} GB/s {peak:8.0f} MiB   wall x{wall / own[0]:.1f}  peak x{peak / own[1]:.0f}")


if __name__ == "__main__":
    main()
