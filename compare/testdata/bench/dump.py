"""Writes a dump of tensors of a model's width: dump.py FILE TENSORS MIB DTYPE NOISE."""

import sys

import torch
from safetensors.torch import save_file

path, tensors, mib, dtype, noise = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), getattr(torch, sys.argv[4]), float(sys.argv[5])
rows = mib * (1 << 20) // (2048 * dtype.itemsize)
generator = torch.Generator().manual_seed(1)
tensor = torch.randn(rows, 2048, generator=generator)
tensor *= 1 + noise * torch.randn(rows, 2048, generator=generator)
save_file({f"t{i}": tensor.to(dtype).clone() for i in range(tensors)}, path)
