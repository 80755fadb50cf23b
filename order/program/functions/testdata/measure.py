"""How far functions of float32 libraries are off, in units of 2^-24 of the right result.

    python functions.py [N]

prints a line for each function, range and library: the largest error of N numbers that are drawn evenly, with a fixed seed.
The right result is numpy's in float64. A unit in the last place of float32 is one to two units of 2^-24.
"""

import ctypes
import ctypes.util
import sys

import numpy as np
import torch

N = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
UNIT = 2.0**-24

libm = ctypes.CDLL(ctypes.util.find_library("m"))


def libm_of(name, arguments):
    f = getattr(libm, name)
    f.restype, f.argtypes = ctypes.c_float, [ctypes.c_float] * arguments
    most = 200_000  # one call each

    def of(*xs):
        return np.array([f(*a) for a in zip(*[x[:most].tolist() for x in xs])], dtype=np.float32)

    return of


def worst(got, want):
    want = want[: len(got)]
    keep = np.abs(want) > 2.0**-126
    return float(np.max(np.abs(got[keep].astype(np.float64) - want[keep]) / np.abs(want[keep])) / UNIT)


def from_numpy(f):
    return lambda *xs: f(*[torch.from_numpy(x) for x in xs]).numpy()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu_erf(x):
    import math

    return np.array([math.erf(v) for v in x.tolist()])


rng = np.random.default_rng(34)
angles = [("angles of positions to 600", 600), ("angles of positions to 32768", 32768)]
cases = []
for name, lo, hi in [("-87 to 0", -87, 0), ("-20 to 20", -20, 20)]:
    x = rng.uniform(lo, hi, N).astype(np.float32)
    cases.append(("exp", name, (x,), np.exp, np.exp, torch.exp, "expf"))
x = rng.uniform(0.01, 100, N).astype(np.float32)
cases.append(("log", "0.01 to 100", (x,), np.log, np.log, torch.log, "logf"))
x = rng.uniform(1.1, 1e7, N).astype(np.float32)
cases.append(("log", "1.1 to 1e7, bases", (x,), np.log, np.log, torch.log, "logf"))
x = rng.uniform(-20, 20, N).astype(np.float32)
cases.append(("tanh", "-20 to 20", (x,), np.tanh, np.tanh, torch.tanh, "tanhf"))
cases.append(("sigmoid", "-20 to 20", (x,), sigmoid, None, torch.sigmoid, None))
x = rng.uniform(-4, 4, min(N, 200_000)).astype(np.float32)
cases.append(("erf", "-4 to 4", (x,), gelu_erf, None, torch.erf, "erff"))
x = np.exp(rng.uniform(-20, 20, N)).astype(np.float32)
cases.append(("rsqrt", "2e-9 to 5e8", (x,), lambda x: x**-0.5, None, torch.rsqrt, None))
for words, most in angles:
    d = rng.choice([64, 80, 96, 128, 256], N)
    base = rng.choice([1e4, 1e5, 5e5, 1e6, 1e7], N)
    x = (rng.integers(0, most, N) * base ** -(2 * rng.integers(0, d // 2) / d)).astype(np.float32)
    cases.append(("cos", words, (x,), np.cos, np.cos, torch.cos, "cosf"))
    cases.append(("sin", words, (x,), np.sin, np.sin, torch.sin, "sinf"))
exponent = (2 * rng.integers(0, 128, N) / 256).astype(np.float32)
base = rng.choice([1e4, 1e5, 5e5, 1e6, 1e7], N).astype(np.float32)
base = np.where(rng.integers(0, 2, N) == 0, base, rng.uniform(10, 1e7, N).astype(np.float32)).astype(np.float32)
for words, y in [("base to 0 to 1", exponent), ("base to -1 to 0", -exponent)]:
    cases.append(("pow", words, (base, y), np.power, np.power, torch.pow, "powf"))
s = (base.astype(np.float64) ** (-2 / rng.choice([64, 128, 256], N))).astype(np.float32)
cases.append(("pow", "a base below 1 to whole numbers to 127", (s, rng.integers(0, 128, N).astype(np.float32)), np.power, np.power, torch.pow, "powf"))

print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}; numpy {np.__version__}; {N} numbers each")
for name, words, xs, right, of_numpy, of_torch, of_libm in cases:
    want = right(*[x.astype(np.float64) for x in xs])
    line = [f"{name}, {words}:"]
    if of_numpy is not None:
        line.append(f"numpy {worst(of_numpy(*xs), want):.2f}")
    line.append(f"torch {worst(from_numpy(of_torch)(*xs), want):.2f}")
    if of_libm is not None:
        line.append(f"libm {worst(libm_of(of_libm, len(xs))(*xs), want):.2f}")
    print(" ".join(line), flush=True)
