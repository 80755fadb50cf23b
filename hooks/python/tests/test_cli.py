"""The command line: arguments, output, and errors."""

import contextlib
import importlib.metadata
import io
import unittest
from unittest import mock

from common import ODD, TINY, TestCase, order_text, python, tensors
from tracediff import hf


class Command(TestCase):
    """hf.main in this process."""

    def setUp(self):
        super().setUp()
        self.order = self.folder / "order.json"
        self.order.write_text(order_text(TINY))
        self.out = self.folder / "ref.safetensors"
        self.good = {
            "--model": str(TINY),
            "--order": str(self.order),
            "--out": str(self.out),
            "--dtype": "float32",
            "--threads": "1",
        }

    def run_with(self, *more, **change):
        """Run with the good arguments, some of them changed; return exit code, stdout, stderr."""
        args = self.good | {f"--{k}": v for k, v in change.items()}
        argv = [word for option in args.items() if option[1] is not None for word in option]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = hf.main([*argv, *more])
        return code, out.getvalue(), err.getvalue()

    def test_help(self):
        run = "import runpy, sys; sys.argv = ['hf', '--help']; runpy.run_module('tracediff.hf', run_name='__main__')"
        done = python(run)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for words in ("example:", "--max-new-tokens", "exit code:", "tracediff order --model"):
            self.assertIn(words, done.stdout)

    def test_prompt_and_decode(self):
        code, out, err = self.run_with("--prompt", "Hello world", "--max-new-tokens", "1", "--level", "2")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"ref.safetensors: 2 passes, tokens 2,527,876;\d+$")
        seen = tensors(self.out)
        self.assertEqual(seen["input_ids"].tolist(), [[2, 527, 876]])
        self.assertEqual(seen["pass1/input_ids"].shape, (1, 1))

    def test_progress_is_lines(self):
        code, _, err = self.run_with("--tokens", "2,5;7", "--level", "1", "--progress")
        self.assertEqual((code, err), (0, f"loading {TINY} in float32\npass 1 of 2\npass 2 of 2\n"))

    def test_tokens_pass_by_pass(self):
        code, _, err = self.run_with("--tokens", "2, 513,88;17", "--level", "1", "--layers", "0")
        self.assertEqual((code, err), (0, ""))
        seen = tensors(self.out)
        self.assertEqual((seen["input_ids"].tolist(), seen["pass1/input_ids"].tolist()), ([[2, 513, 88]], [[17]]))
        self.assertNotIn("logits", seen)

    def test_wrong_input(self):
        wrong_order = self.folder / "odd.json"
        wrong_order.write_text(order_text(ODD))
        (self.folder / "text.json").write_text("Hello")
        tokens = ("--tokens", "2,5")
        cases = {
            "model is not there": (tokens, {"model": "no/such/folder"}, "no/such/folder"),
            "model is no checkpoint": (tokens, {"model": str(self.folder)}, "config.json is not there"),
            "no tokenizer": (("--prompt", "Hello"), {"model": str(ODD)}, "tokenizer"),
            "order is not there": (tokens, {"order": "none.json"}, "none.json"),
            "order is no order": (tokens, {"order": str(self.folder / "text.json")}, "not an order"),
            "order of another model": (tokens, {"order": str(wrong_order)}, "another configuration"),
            "unknown dtype": (tokens, {"dtype": "int4"}, "int4"),
            "no dtype": (tokens, {"dtype": None}, "--dtype"),
            "id beyond the vocabulary": (("--tokens", "2,1024"), {}, "token 1024 is not in the vocabulary of 1024"),
            "no number": (("--tokens", "2,x"), {}, "'x' is not a token id"),
            "thousands of digits": (("--tokens", "1" * 5000), {}, "is not a token id"),
            "negative": (("--tokens", "2,-1"), {}, "'-1' is not a token id"),
            "an empty pass": (("--tokens", "2;"), {}, "'' is not a token id"),
            "empty prompt": (("--prompt", ""), {}, "the text is empty"),
            "neither": ((), {}, "--prompt --tokens"),
            "both": ((*tokens, "--prompt", "x"), {}, "not allowed with"),
            "too long": (("--tokens", "2", "--max-new-tokens", "128"), {}, "129 tokens"),
            "layers": ((*tokens, "--layers", "9"), {}, "no such layer"),
            "output folder": (tokens, {"out": str(self.folder / "none" / "x.safetensors")}, "No such file"),
            "output is a folder": (tokens, {"out": str(self.folder)}, "a folder, not a file"),
            "device": (tokens, {"device": "cuda:99"}, "--device cuda:99"),
            "threads": ((*tokens, "--threads", "-1"), {}, "not negative"),
        }
        for reason, (more, change, words) in cases.items():
            with self.subTest(reason):
                code, out, err = self.run_with(*more, **change)
                self.assertEqual((code, out), (2, ""))
                self.assertTrue(err.startswith("tracediff.hf: "), err)
                self.assertIn(words, err.splitlines()[0])
                self.assertLessEqual(len(err.splitlines()), 2)
                self.assertFalse(self.out.exists())

    def test_a_failed_capture(self):
        self.order.write_text(order_text(TINY).replace('"name":"probs_f32"', '"name":"probs_f64"'))
        code, _, err = self.run_with("--tokens", "2,5")
        self.assertEqual(code, 1)
        self.assertIn("layers.0.self_attn.probs_f32: attn:layers.0.self_attn(probs_f64)", err)
        self.assertFalse(self.out.exists())
        self.assertTrue(self.out.with_name("ref.safetensors.part").exists())

    def test_missing_package(self):
        def version(name):
            if name == "transformers":
                raise importlib.metadata.PackageNotFoundError(name)
            return "2.15.0+cpu"

        with mock.patch("importlib.metadata.version", version):
            code, _, err = self.run_with("--tokens", "2,5")
        want = "tracediff.hf: transformers: not installed\nhint: pip install torch==2.15.0 transformers==5.23.0\n"
        self.assertEqual((code, err), (2, want))

    def test_other_versions_are_a_warning(self):
        versions = {"torch": "2.15.0+cpu", "transformers": "5.20.1"}
        with mock.patch("importlib.metadata.version", versions.get):
            code, _, err = self.run_with("--tokens", "2,5", "--level", "1")
        want = "transformers 5.20.1 is not the pinned 5.23.0: tensors can differ in their last bits"
        self.assertEqual((code, err), (0, f"tracediff.hf: warning: {want}\n"))


if __name__ == "__main__":
    unittest.main()
