"""The script of somebody who has thought about it: constant memory, pieces that fit a cache, sums in float64."""

import sys

import torch
from safetensors import safe_open

CHUNK = 1 << 18

with safe_open(sys.argv[1], "pt") as local, safe_open(sys.argv[2], "pt") as reference:
    for name in reference.keys():
        l, r = local.get_tensor(name).flatten(), reference.get_tensor(name).flatten()
        dd = rr = ll = lr = most = 0.0
        for at in range(0, r.numel(), CHUNK):
            a, b = l[at : at + CHUNK].double(), r[at : at + CHUNK].double()
            d = a - b
            dd, rr, ll, lr = dd + d.dot(d).item(), rr + b.dot(b).item(), ll + a.dot(a).item(), lr + a.dot(b).item()
            most = max(most, d.abs().max().item())
        print(name, most, (dd / max(rr, 1e-300)) ** 0.5, lr / max(ll * rr, 1e-300) ** 0.5)
