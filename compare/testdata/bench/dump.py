"""Writes a dump of equal tensors of a model's width: dump.py FILE TENSORS MIB DTYPE NOISE KIND.

KIND is plain; masks: −inf above the diagonal, as in attention scores; or nan: one of a thousand elements. With noise every element
that is a number differs from the dump that has none. The file is written tensor by tensor.
"""

import json
import struct
import sys

import torch

WIDTH = 2048
NAMES = {"float32": "F32", "bfloat16": "BF16"}

path, tensors, mib, dtype, noise, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], float(sys.argv[5]), sys.argv[6]
rows = mib * (1 << 20) // (WIDTH * getattr(torch, dtype).itemsize)
generator = torch.Generator().manual_seed(1)
tensor = torch.randn(rows, WIDTH, generator=generator)
if noise:
    tensor *= 1 + noise * (1 + torch.rand(rows, WIDTH, generator=generator))
if kind == "masks":
    row = torch.arange(rows)[:, None] % WIDTH
    tensor.masked_fill_(torch.arange(WIDTH)[None, :] > row, -torch.inf)
if kind == "nan":
    tensor.view(-1)[::1000] = torch.nan
data = tensor.to(getattr(torch, dtype)).view(torch.uint8).numpy()
size = data.nbytes
header = {f"t{i}": {"dtype": NAMES[dtype], "shape": [rows, WIDTH], "data_offsets": [i * size, (i + 1) * size]} for i in range(tensors)}
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(path, "wb") as out:
    out.write(struct.pack("<Q", len(text)) + text)
    for _ in range(tensors):
        out.write(data)
