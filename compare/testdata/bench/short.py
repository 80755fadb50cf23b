"""The script that everybody writes: load two dumps, and print what differs."""

import sys

import torch
from safetensors.torch import load_file

local, reference = load_file(sys.argv[1]), load_file(sys.argv[2])
for name, r in reference.items():
    l = local[name]
    d = (l.float() - r.float()).abs()
    cosine = torch.nn.functional.cosine_similarity(l.float().flatten(), r.float().flatten(), dim=0)
    print(name, torch.allclose(l.float(), r.float(), rtol=1e-3, atol=1e-5), d.max().item(), d.mean().item(), cosine.item())
