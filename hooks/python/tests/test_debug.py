"""Debug mode: the lines are exactly the lines of the Go program."""

import contextlib
import io
import json
import pathlib
import re
import sys
import unittest
import warnings
from unittest import mock

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from common import ROOT, TINY, TestCase, order_text, python, tensors
from tracediff import debug, hf, order, shown, trace
from tracediff.errors import BadInput

sys.path.insert(0, str(ROOT / "hooks" / "python" / "examples"))

import refine

GOLDEN = ROOT / "capture" / "debug" / "testdata"
REFINE, BATCH = (ROOT / "fixtures" / "steps" / name for name in ("refine.safetensors", "batch.safetensors"))


def ticks():
    """Return the clock of the golden lines: its n-th reading is n² hundredths of a millisecond."""
    n = 0

    def read():
        nonlocal n
        n += 1
        return n * n * 1e-5

    return read


def lines(path: pathlib.Path, arrays: bool) -> str:
    """Return the debug lines of a run that records the tensors of a trace, as numpy arrays or as torch tensors."""
    out = io.StringIO()
    log = debug.Log(out, passes=debug.PASSES, clock=ticks())
    seen = tensors(path)
    with trace.Reader(path) as reader:
        for key, info in reader.tensors.items():
            log.arrive()
            log.show(key, trace.NAMES[info.dtype], reader.array(key) if arrays else seen[key])
            log.leave()
    log.end()
    return out.getvalue()


class Reads(TorchDispatchMode):
    """Counts the elements of the tensors that torch's operators are given, views apart."""

    VIEWS = ("view", "slice", "alias", "_unsafe_view", "select")

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Count the largest operand of an operator, and call it."""
        if func.overloadpacket.__name__ not in self.VIEWS:
            self.elements += max((x.numel() for x in args if isinstance(x, torch.Tensor)), default=0)
        return func(*args, **(kwargs or {}))


class Lines(TestCase):
    """One format for every recorder."""

    maxDiff = None

    def test_as_the_go_program_prints_them(self):
        for path, golden in ((GOLDEN / "odd.safetensors", "odd.txt"), (REFINE, "refine.txt"), (BATCH, "batch.txt")):
            for arrays in (False, True):
                with self.subTest(golden, arrays=arrays), warnings.catch_warnings():
                    warnings.simplefilter("error")
                    self.assertEqual(lines(path, arrays), (GOLDEN / golden).read_text())

    def test_sums_that_overflow(self):
        numbers = numpy.array([1e308, 1e308, -1e308])
        for tensor in (numbers, torch.from_numpy(numbers)):
            out = io.StringIO()
            log = debug.Log(out)
            with self.subTest(type(tensor).__name__), warnings.catch_warnings():
                warnings.simplefilter("error")
                log.arrive()
                log.show("x", "float64", tensor)
            self.assertIn(" min=-1e+308 max=1e+308 mean=3.33333e+307 std=- nan=0 ", out.getvalue())

    def test_words(self):
        text = 'a"b\\ \x1b[2J\n\x9b\xa0\u2028木'
        self.assertEqual(debug.quoted(text), '"a\\"b\\\\ \\x1b[2J\\x0a\\x9b\xa0\\u2028木"')
        codes = 'a\\"b\\\\\\x20\\x1b[2J\\x0a\\xc2\\x9b\\xc2\\xa0\\xe2\\x80\\xa8\\xe6\\x9c\\xa8'
        self.assertEqual(debug.word(text), codes)
        self.assertEqual((debug.word(""), debug.quoted("")), ("-", '""'))

    def test_large_tensors_keep_their_digits(self):
        out = io.StringIO()
        log = debug.Log(out)
        numbers = torch.Generator().manual_seed(1)
        far = 1e6 + torch.randn(300_000, generator=numbers, dtype=torch.float64)
        log.arrive()
        log.show("x", "float64", far)
        self.assertIn(f"mean={float(far.mean()):.6g} std={float(far.std(correction=0)):.6g} ", out.getvalue())


class Recording(TestCase):
    """Switches of debug mode, and no effect of debug mode on a run."""

    def record(self, **env):
        """Record two tensors under an environment; return the text on standard error and the trace's bytes."""
        path, err = self.folder / "run.safetensors", io.StringIO()
        with mock.patch.dict("os.environ", env), contextlib.redirect_stderr(err), trace.Writer(path, {}) as writer:
            writer.append("layers.0.in", torch.tensor([[1.0, -2.0]], dtype=torch.bfloat16).t())
            writer.append("pass1/layers.0.in#1", torch.tensor(3))
        return err.getvalue(), path.read_bytes()

    def test_environment(self):
        silent, plain = self.record()
        self.assertEqual(silent, "")
        for env in ({"TRACEDIFF_DEBUG": "TRUE"}, {"TRACEDIFF_DEBUG": "on"}, {"DEBUG": "Yes"}, {"TRACEDIFF_DEBUG": "1", "DEBUG": "no"}):
            with self.subTest(**env):
                said, bytes_ = self.record(**env)
                self.assertIn("debug: tensor pass=0 name=layers.0.in shape=[2,1] dtype=bfloat16 min=-2 max=1 ", said)
                self.assertIn("debug: tensor pass=1 name=layers.0.in#1 shape=[] dtype=int64 min=3 ", said)
                self.assertTrue(said.splitlines()[-1].startswith("debug: end passes=2 short=0 tensors=2 "))
                self.assertEqual(bytes_, plain)
        others = ({"DEBUG": "express:*"}, {"DEBUG": "2"}, {"TRACEDIFF_DEBUG": "Off", "DEBUG": "1"}, {"DEBUG": ""})
        for env in others:
            with self.subTest(**env):
                self.assertEqual(self.record(**env)[0], "")
        said, bytes_ = self.record(TRACEDIFF_DEBUG="maybe", DEBUG="1")
        self.assertEqual((said, bytes_), (f'debug: note text="{debug.UNKNOWN}"\n', plain))

    def test_passes_shown_in_full(self):
        said, _ = self.record(TRACEDIFF_DEBUG="1", TRACEDIFF_DEBUG_PASSES="1")
        self.assertEqual(len(re.findall("^debug: tensor ", said, re.MULTILINE)), 1)
        self.assertEqual(len(re.findall("^debug: pass ", said, re.MULTILINE)), 2)
        self.assertIn("debug: note pass=1 ", said)
        self.assertIn(" short=1 ", said)
        for text, passes, wrong in (
            ("x", 3, 1), ("0", 3, 1), ("-3", 3, 1), ("9" * 40, 3, 1), ("", 3, 0), ("12", 12, 0)
        ):  # fmt: skip
            said, _ = self.record(TRACEDIFF_DEBUG="1", TRACEDIFF_DEBUG_PASSES=text)
            self.assertTrue(said.startswith(f"debug: begin passes={passes} "), said)
            self.assertEqual(said.count('\ndebug: note text="TRACEDIFF_DEBUG_PASSES is not a number of passes, 1 or more: '), wrong, said)

    def test_layers_shown_in_full(self):
        for text, layers, shown in (("", 2, 1), ("3", 3, 2), ("x", 2, 1)):
            err = io.StringIO()
            env = {"TRACEDIFF_DEBUG": "1", "TRACEDIFF_DEBUG_LAYERS": text}
            path = self.folder / "run.safetensors"
            with mock.patch.dict("os.environ", env), contextlib.redirect_stderr(err), trace.Writer(path, {}) as writer:
                for layer in (1, 2, 30):
                    writer.append(f"layers.{layer}.out", torch.ones(2))
            said = err.getvalue()
            self.assertIn(f" layers={layers}\n", said)
            self.assertEqual(said.count("debug: tensor "), shown, said)
            self.assertEqual(said.count("debug: section "), 3, said)
            self.assertEqual(said.count("LAYERS is not a number of layers"), text == "x", said)

    def test_what_a_tensor_costs(self):
        """A tensor that is listed is converted, and read for sum, squares and extremes; any other is summed up once."""
        n = 1 << 17
        for name, dtype, most in (
            ("layers.0.out", torch.bfloat16, 4), ("layers.0.out", torch.float32, 4), ("layers.2.out", torch.bfloat16, 1),
            ("layers.2.out", torch.float32, 1),
        ):  # fmt: skip
            log = debug.Log(io.StringIO(), passes=1, layers=2)
            log.arrive()
            x = torch.linspace(-1, 2, n).to(dtype)
            with self.subTest(name, dtype=dtype), Reads() as reads:
                log.show(name, str(dtype).removeprefix("torch."), x)
            self.assertEqual(reads.elements // n, most)  # single numbers are read, too

    def test_a_failed_run_has_its_summary(self):
        err = io.StringIO()
        log = debug.Log(err)
        with self.assertRaises(ValueError), trace.Writer(self.folder / "run.safetensors", {}, log=log) as writer:
            writer.append("x", torch.ones(2))
            writer.append("x", torch.ones(2))
        self.assertIn("debug: end passes=1 short=0 tensors=1 ", err.getvalue())

    def test_nobody_reads(self):
        class Closed(io.StringIO):
            def write(self, _text):
                raise BrokenPipeError

        path = self.folder / "run.safetensors"
        with trace.Writer(path, {}, log=debug.Log(Closed())) as writer:
            writer.append("x", torch.ones(2))
        self.assertEqual(list(tensors(path)), ["x"])


class Runs(TestCase):
    """The runner's flag, and the example."""

    def test_transformers(self):
        listed = self.folder / "order.json"
        listed.write_text(order_text(TINY))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = hf.main([
                "--model", str(TINY), "--order", str(listed), "--out", str(self.folder / "ref.safetensors"),
                "--dtype", "float32", "--threads", "1", "--prompt", "Hello world", "--level", "1", "--debug",
            ])  # fmt: skip
        self.assertEqual(code, 0, err.getvalue())
        said = err.getvalue()
        for text in (
            'debug: token pass=0 position=1 id=527 text="Hello"',
            'debug: token pass=0 position=2 id=876 text=" world"',
            "debug: tensor pass=0 name=layers.1.out shape=[4,1,3,32] dtype=float32 ",
            "debug: section pass=0 section=layer.3 ",
            "debug: top pass=0 row=2 rank=5 ",
            "debug: end passes=1 ",
        ):
            self.assertIn(text, said)

    def test_a_part_of_what_is_recorded(self):
        listed, only, out = (self.folder / name for name in ("order.json", "only.json", "ref.safetensors"))
        listed.write_text(order_text(TINY))
        names = ["input_ids", "layers.0.out", "layers.3.out"]
        only.write_text(json.dumps({"names": names, "passes": "0,2-", "positions": "1-2,4"}))
        err, env = io.StringIO(), {"TRACEDIFF_DEBUG_LAYERS": "4"}
        said, silent = contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO())
        with mock.patch.dict("os.environ", env), silent, said:
            code = hf.main([
                "--model", str(TINY), "--order", str(listed), "--out", str(out), "--dtype", "float32", "--threads", "1",
                "--tokens", "2,527,876;7;8,9", "--level", "1", "--debug", "--debug-only", str(only),
            ])  # fmt: skip
        self.assertEqual(code, 0, err.getvalue())
        found = re.findall(r"^debug: tensor pass=(\d) name=(\S+) shape=(\S+)", err.getvalue(), re.MULTILINE)
        self.assertEqual(found, [
            ("0", "input_ids", "[1,3]"), ("0", "layers.0.out", "[4,1,2,32]"), ("0", "layers.3.out", "[4,1,2,32]"),
            ("2", "input_ids", "[1,2]"), ("2", "layers.0.out", "[4,1,1,32]"), ("2", "layers.3.out", "[4,1,1,32]"),
        ])  # fmt: skip
        listed_ids = re.findall(r" position=(\d) id=(\d+)", err.getvalue())
        self.assertEqual(listed_ids, [("1", "527"), ("2", "876"), ("4", "8")])
        whole = tensors(out)  # all is recorded
        self.assertEqual(len(whole), 3 * 63)
        row = whole["pass2/layers.3.out"][:, :, 0]
        self.assertIn(f"max={row.max():.6g} ", err.getvalue().split("pass=2 name=layers.3.out")[1].splitlines()[0])
        for text in ("[]", "{", '{"names":[],"passes":"x","positions":""}'):
            only.write_text(text)
            with self.subTest(text), self.assertRaisesRegex(BadInput, "--debug-only"):
                shown.Shown(str(only), order.load(listed), [1])

    def test_example_makes_the_fixture(self):
        path = self.folder / "again.safetensors"
        refine.main(["--out", str(path)])
        have, want = tensors(path), tensors(REFINE)
        self.assertEqual(list(have), list(want))
        for name, tensor in want.items():
            torch.testing.assert_close(have[name], tensor, rtol=1e-3, atol=1e-3, msg=name)
        said = lines(path, arrays=False)
        self.assertIn('series=refine.state steps=10 outcome="converged at step 9"', said)
        self.assertIn('series=refine.state steps=12 outcome="hit the maximum of 12 steps"', said)

    def test_needs_no_torch(self):
        bare = "import sys; sys.modules.update(torch=None, numpy=None)"
        done = python(f"{bare}; from tracediff import debug, trace; print(debug.wanted({{'DEBUG': '1'}}))")
        self.assertEqual((done.stdout, done.stderr), ("True\n", ""))


if __name__ == "__main__":
    unittest.main()
