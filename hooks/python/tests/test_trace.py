"""The trace file, written by us and opened by the official safetensors package."""

import contextlib
import io
import json
import signal
import struct
import unittest
from unittest import mock

import numpy
import safetensors
import torch

from common import TestCase, python, tensors
from tracediff import trace
from tracediff.errors import BadInput

VALUES = {
    "input_ids": torch.tensor([[2, 527, 876]]),
    "layers.0.in": torch.arange(15).to(torch.bfloat16).reshape(3, 1, 5),
    "layers.0.probs": torch.linspace(0, 1, 6).reshape(2, 3).t(),  # not contiguous
    "mask": torch.tensor([True, False, True]),
    "scalar": torch.tensor(1.5, dtype=torch.float16),
    "empty": torch.zeros(1, 0, 4),
    "pass1/input_ids": torch.tensor([[7]]),
    "pass1/layers.0.in#1": torch.tensor([float("nan"), -0.0, float("inf")]),
    'größe "木"': torch.tensor([1, 2], dtype=torch.uint8),
}
MANIFEST = {"tracediff.sequence": "execution", "tracediff.prompt": 'a "quoted"\n木'}


class Writing(TestCase):
    """What a Writer leaves on disk."""

    def setUp(self) -> None:
        super().setUp()
        self.path = self.folder / "ref.safetensors"
        self.part = self.folder / "ref.safetensors.part"

    def opens(self, path, names):
        """The official package finds exactly these, and our Reader in this order."""
        with safetensors.safe_open(path, "pt") as file:
            self.assertEqual(set(file.keys()), set(names))
            for name in names:
                self.assertEqual(file.get_tensor(name).dtype, VALUES[name].dtype)
                numpy.testing.assert_array_equal(file.get_tensor(name).float(), VALUES[name].float())
        with trace.Reader(path) as reader:
            self.assertEqual(list(reader.tensors), list(names))

    def written(self, reserved):
        """Write VALUES, looking at the file after each append."""
        with trace.Writer(self.path, MANIFEST, reserved) as writer:
            self.opens(self.part, [])
            for n, (name, tensor) in enumerate(VALUES.items(), 1):
                writer.append(name, tensor)
                self.opens(self.part, list(VALUES)[:n])
        self.opens(self.path, list(VALUES))
        self.assertFalse(self.part.exists())

    def test_opens_between_any_two_appends(self):
        self.written(1 << 16)

    def test_header_overflow_makes_room_and_loses_nothing(self):
        self.written(0)
        self.assertEqual([f.name for f in self.folder.iterdir()], ["ref.safetensors"])

    def test_known_tensors_leave_no_slack(self):
        known = [(k, trace.DTYPES[str(t.dtype)[6:]], tuple(t.shape)) for k, t in VALUES.items()]
        self.written(trace.reserve(known))
        (length,) = struct.unpack("<Q", self.path.read_bytes()[:8])
        header = self.path.read_bytes()[8 : 8 + length]
        self.assertLess(length - len(header.rstrip()), trace.ALIGN)
        self.assertEqual((8 + length) % trace.ALIGN, 0)

    def test_manifest_begins_with_version_and_status(self):
        self.written(0)
        (length,) = struct.unpack("<Q", self.path.read_bytes()[:8])
        header = self.path.read_bytes()[8 : 8 + length].decode()
        self.assertTrue(header.startswith('{"__metadata__":{"tracediff.version":"1","tracediff.status":"complete   '))
        metadata = json.loads(header)["__metadata__"]
        self.assertEqual(len(metadata[trace.STATUS]), trace.STATUS_WIDTH)
        self.assertEqual({k: metadata[k] for k in MANIFEST}, MANIFEST)

    def test_numpy_arrays_are_written_as_torch_tensors_are(self):
        array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3).T
        with trace.Writer(self.path, {}) as writer:
            writer.append("numpy", array)
            writer.append("torch", torch.from_numpy(array))
        with trace.Reader(self.path) as reader:
            self.assertEqual(reader.tensors["numpy"][:2], reader.tensors["torch"][:2])
            numpy.testing.assert_array_equal(reader.array("numpy"), array)
            self.assertEqual(reader.read("numpy"), reader.read("torch"))

    def test_bfloat16_is_read_as_float32_exactly(self):
        tensor = torch.tensor([1.0, -0.0, 3.3895313892515355e38, float("-inf"), 1e-40], dtype=torch.bfloat16)
        with trace.Writer(self.path, {}) as writer:
            writer.append("x", tensor)
        with trace.Reader(self.path) as reader:
            self.assertEqual(reader.array("x").tobytes(), tensor.float().numpy().tobytes())

    def test_float8(self):
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            tensor = torch.tensor([[1.0, -0.0, 448.0], [-2.0, 0.015625, 3.5]]).to(dtype)
            with self.subTest(dtype=dtype), mock.patch.dict("os.environ", TRACEDIFF_DEBUG="1"):
                with contextlib.redirect_stderr(io.StringIO()) as said, trace.Writer(self.path, {}) as writer:
                    writer.append("x", tensor.t())
                have = tensors(self.path)["x"]
                self.assertEqual(have.dtype, dtype)
                self.assertTrue(torch.equal(have.float(), tensor.t().float()))
                self.assertIn(f"shape=[3,2] dtype={str(dtype)[6:]} min=-2 max=448 ", said.getvalue())
                with trace.Reader(self.path) as reader, self.assertRaisesRegex(BadInput, "numpy does not have"):
                    reader.array("x")

    def test_failure_keeps_the_old_trace_and_says_why(self):
        self.written(0)
        before = self.path.read_bytes()
        with self.assertRaises(RuntimeError), trace.Writer(self.path, MANIFEST) as writer:
            writer.append("input_ids", VALUES["input_ids"])
            raise RuntimeError('the "model"\nstopped: ' + "木" * 300)
        self.assertEqual(self.path.read_bytes(), before)
        self.opens(self.part, ["input_ids"])
        with trace.Reader(self.part) as reader:
            self.assertEqual(reader.status, "failed")
            self.assertTrue(reader.metadata[trace.STATUS].startswith("failed: RuntimeError: the 'model''stopped: '"))

    def test_one_key_once(self):
        with self.assertRaises(ValueError), trace.Writer(self.path, {}) as writer:
            writer.append("x", VALUES["mask"])
            writer.append("x", VALUES["mask"])

    def test_complex_numbers_have_no_place(self):
        with self.assertRaises(BadInput), trace.Writer(self.path, {}) as writer:
            writer.append("x", torch.zeros(2, dtype=torch.complex64))

    def test_folder_that_is_not_there(self):
        with self.assertRaises(BadInput):
            trace.Writer(self.folder / "none" / "ref.safetensors", {})


class Killed(TestCase):
    """The file of a process that is killed while writing."""

    KILL = """
import os, signal, sys, numpy
from tracediff import trace
path, appends, reserved = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
writer = trace.Writer(path, {"tracediff.sequence": "execution"}, reserved)
for n in range(appends):
    writer.append(f"layers.{n}.out", numpy.full((3, n), n, "f4"))
os.kill(os.getpid(), signal.SIGKILL)
"""

    def test_everything_appended_is_there(self):
        for appends, reserved in ((0, 0), (1, 0), (40, 0), (40, 1 << 16)):
            path = self.folder / f"{appends}-{reserved}.safetensors"
            done = python(self.KILL, str(path), str(appends), str(reserved))
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            self.assertFalse(path.exists())
            with safetensors.safe_open(f"{path}.part", "numpy") as file:
                self.assertEqual(len(file.keys()), appends)
                for n in range(appends):
                    numpy.testing.assert_array_equal(file.get_tensor(f"layers.{n}.out"), numpy.full((3, n), n, "f4"))

    def test_data_without_an_entry_is_left_out(self):
        path = self.folder / "ref.safetensors"
        writer = trace.Writer(path, {})
        writer.append("x", numpy.ones(2, "f4"))
        with writer.part.open("ab") as file:  # an append that was killed between its two writes
            file.write(b"12345")
        with trace.Reader(writer.part) as reader:
            self.assertEqual((reader.status, list(reader.tensors)), ("open", ["x"]))
            numpy.testing.assert_array_equal(reader.array("x"), [1, 1])
        writer.fail("test")


class Reading(TestCase):
    """Files whose contents contradict their header."""

    def file(self, header, data=b"", length=None):
        """Write a file with this header."""
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        path = self.folder / "bad.safetensors"
        path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
        return path

    def test_is_refused(self):
        def one(**change):
            return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | change}

        complete = {"__metadata__": {trace.STATUS: "complete"}}
        cases = {
            "header longer than the file": (b"{}", b"", 1 << 60),
            "not JSON": (b"{", b"", None),
            "a list": (b"[]", b"", None),
            "deep nesting": (b"[" * 100_000, b"", None),
            "a key twice": (b'{"x":1,"x":2}', b"", None),
            "no offsets": ({"x": {"dtype": "F32", "shape": []}}, b"", None),
            "not an object": ({"x": 3}, b"", None),
            "unknown dtype": (one(dtype="F31"), b"12345678", None),
            "negative size": (one(shape=[-2]), b"12345678", None),
            "a size that is a float": (one(shape=[2.0]), b"12345678", None),
            "size and offsets differ": (one(shape=[3]), b"12345678", None),
            "a gap": (one(data_offsets=[4, 12]), b"123456789012", None),
            "data cut off": (one() | complete, b"1234", None),
            "data behind a complete trace": (one() | complete, b"123456789", None),
            "data behind another writer's file": (one(), b"123456789", None),
            "metadata that is no text": ({"__metadata__": {"a": 1}}, b"", None),
        }
        for reason, (header, data, length) in cases.items():
            with self.subTest(reason), self.assertRaises(BadInput):
                trace.Reader(self.file(header, data, length))

    def test_short_and_missing_files(self):
        path = self.folder / "short.safetensors"
        path.write_bytes(b"1234567")
        for file in (path, self.folder / "none.safetensors"):
            with self.assertRaises(BadInput):
                trace.Reader(file)

    def test_a_file_that_shrinks(self):
        path = self.file({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"12345678")
        with trace.Reader(path) as reader:
            path.write_bytes(path.read_bytes()[:-1])
            with self.assertRaises(BadInput):
                reader.read("x")

    def test_keys(self):
        self.assertEqual(trace.key("norm"), "norm")
        self.assertEqual(trace.key("norm", 2), "pass2/norm")
        self.assertEqual(trace.key("norm", 0, 1), "norm#1")

    def test_reading_and_writing_need_no_package(self):
        code = "import sys; from tracediff import trace, order, hf; print({'torch', 'numpy'} & sys.modules.keys())"
        self.assertEqual(python(code).stdout.strip(), "set()")


if __name__ == "__main__":
    unittest.main()
