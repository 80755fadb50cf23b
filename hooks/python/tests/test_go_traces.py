"""The official safetensors package opens files of the Go writer: finished traces, failed traces, and unfinished traces
between two appends. The files are in capture/testdata/snapshots; a Go test keeps them equal to the writer's output.
Needs safetensors and numpy, and no Python of this project.
"""

import json
import re
import struct
import unittest
from pathlib import Path

import numpy as np
from safetensors import safe_open

SNAPSHOTS = Path(__file__).parents[3] / "capture" / "testdata" / "snapshots"

# The tensors in the order of firing: key, dtype in the file, shape. Element i of the n-th tensor is (7*n + i) mod 100,
# or the parity of that number for BOOL.
FIRED = [
    ("input_ids", "I64", [1, 4]),
    ("embed_tokens", "BF16", [1, 4, 3]),
    ("layers.0.input_layernorm", "F32", [1, 4, 3]),
    ("layers.0.empty", "F16", [0, 3]),
    ("layers.0.scale", "F64", []),
    ("layers.0.input_layernorm#1", "F32", [1, 4, 3]),
    ("mask.full", "BOOL", [4]),
    ("pass1/input_ids", "I64", [1, 1]),
    ("pass1/layers.0.input_layernorm", "F16", [1, 1, 3]),
    ('pass12/größe "木"', "U8", [2, 2]),
]

STATUS = {"open": "open", "complete": "complete", "failed": "failed: größe 木"}


def expected(n):
    """The values of the n-th tensor, as float64."""
    _, dtype, shape = FIRED[n]
    values = (7 * n + np.arange(np.prod(shape, dtype=int))) % 100
    return (values % 2 if dtype == "BOOL" else values).astype(np.float64).reshape(shape)


def raw_header(path):
    """The header's entries in the order of the text, and where the data start."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), 8 + length


def values(path, file, key):
    """A tensor as float64. numpy has no bfloat16, so its bits are widened by hand, at the header's offsets."""
    if file.get_slice(key).get_dtype() != "BF16":
        return file.get_tensor(key).astype(np.float64)
    header, start = raw_header(path)
    begin, end = header[key]["data_offsets"]
    halves = np.frombuffer(path.read_bytes()[start + begin : start + end], dtype="<u2")
    return (halves.astype(np.uint32) << 16).view(np.float32).astype(np.float64).reshape(header[key]["shape"])


class GoTraces(unittest.TestCase):
    def snapshots(self):
        """Each file with its status and the number of fired tensors, both from its name."""
        for path in sorted(SNAPSHOTS.glob("*.safetensors")):
            status, count = re.fullmatch(r"(\w+)-(\d+)\.safetensors", path.name).groups()
            yield path, status, int(count)

    def test_every_kind_is_there(self):
        kinds = [status for _, status, _ in self.snapshots()]
        self.assertGreaterEqual(kinds.count("open"), 5)
        self.assertIn("complete", kinds)
        self.assertIn("failed", kinds)

    def test_tensors(self):
        for path, _, count in self.snapshots():
            with self.subTest(path.name), safe_open(path, framework="np") as file:
                self.assertEqual(sorted(file.keys()), sorted(key for key, _, _ in FIRED[:count]))
                for n, (key, dtype, shape) in enumerate(FIRED[:count]):
                    piece = file.get_slice(key)
                    self.assertEqual((piece.get_dtype(), piece.get_shape()), (dtype, shape), key)
                    np.testing.assert_array_equal(values(path, file, key), expected(n), err_msg=key)

    def test_order(self):
        for path, _, count in self.snapshots():
            with self.subTest(path.name), safe_open(path, framework="np") as file:
                fired = [key for key, _, _ in FIRED[:count]]
                self.assertEqual(file.offset_keys(), fired)
                header, start = raw_header(path)
                self.assertEqual(list(header), ["__metadata__"] + fired)
                offsets = [0] + [edge for key in fired for edge in header[key]["data_offsets"]]
                self.assertEqual(offsets, sorted(offsets))
                self.assertEqual(start + offsets[-1], path.stat().st_size)

    def test_metadata(self):
        for path, status, _ in self.snapshots():
            with self.subTest(path.name), safe_open(path, framework="np") as file:
                metadata = file.metadata()
                self.assertEqual(metadata.pop("tracediff.status").rstrip(" "), STATUS[status])
                self.assertEqual(json.loads(metadata.pop("tracediff.producer")), {"name": "tracediff", "version": "0"})
                self.assertEqual(
                    metadata,
                    {
                        "tracediff.version": "1",
                        "tracediff.sequence": "execution",
                        "tracediff.side": "local",
                        "tracediff.prompt": 'Grüße, "Welt"',
                    },
                )


if __name__ == "__main__":
    unittest.main()
