"""Times capturing one forward of a checkpoint, whole processes, in turns: transformers with hooks of its own (forward.py), the local
model, and python -m tracediff.hf.

    python fixtures/e2b.py DIR                                             # a checkpoint of 9 GB
    python compare/testdata/bench/models.py DIR                            # prompts of 1 and 8 tokens, five runs: some minutes
    python compare/testdata/bench/models.py DIR --tokens 8 --runs 1

Run it at the root of the repository; it needs Go, the packages of hooks/python/requirements.txt, and a checkpoint that stays in the page
cache. Of each program it prints the medians of wall time, of processor time and of the peak of resident memory, and "x": its time over
that of forward.py in the same turn. The digest of the weights is known to all of them: the first capture computes it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from run import in_turns


def captures(folder, model, tokens):
    """The commands, by name."""
    tracediff, order = os.path.join(folder, "tracediff"), os.path.join(folder, "order.json")
    ids = ",".join(str(2 + k * k * 97 % 4000) for k in range(tokens))
    out = os.path.join(folder, "out.safetensors")
    local = [tracediff, "capture", "--quiet", "--side", "local", "--model", model, "--dtype", "bfloat16", "--tokens", ids]
    runner = [sys.executable, "-m", "tracediff.hf", "--model", model, "--order", order, "--dtype", "bfloat16", "--tokens", ids]
    return {
        "forward.py": [sys.executable, os.path.join(os.path.dirname(__file__), "forward.py"), model, ids, out],
        "local": [*local, "--dir", os.path.join(folder, "local")],
        "hf": [*runner, "--level", "2", "--out", out],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a checkpoint folder")
    parser.add_argument("--tokens", nargs="+", type=int, default=[1, 8], help="lengths of the prompts")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(["hooks/python", os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        tracediff = os.path.join(folder, "tracediff")
        subprocess.run(["go", "build", "-o", tracediff, "./cmd/tracediff"], check=True)
        with open(os.path.join(folder, "order.json"), "w") as file:
            subprocess.run([tracediff, "order", "--model", args.model, "--format", "json"], check=True, stdout=file)
        for tokens in args.tokens:
            medians, figures = in_turns(captures(folder, args.model, tokens), args.runs)
            print(f"{tokens} tokens, {os.cpu_count()} processors, {args.runs} runs", flush=True)
            for name, (wall, cpu, peak) in medians.items():
                pairs = list(zip(figures[name], figures["forward.py"]))
                times, work = (statistics.median(own[k] / peer[k] for own, peer in pairs) for k in (0, 1))
                print(f"  {name:11} {wall:8.3f} s {cpu:8.3f} s of processor {peak:7.0f} MiB   x{times:.3f}, by processor time x{work:.3f}", flush=True)


if __name__ == "__main__":
    main()
