"""ONNX models in ONNX Runtime: recorded tensors, their names, and messages about errors.

Needs onnx and onnxruntime (fixtures/wild/onnx/requirements.txt): .ci/run has an environment with them.
"""

import contextlib
import importlib.util
import io
import json
import unittest
from unittest import mock

from common import TestCase
from tracediff import graph, ort, trace
from tracediff import onnx as command

HAVE = all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime"))
if HAVE:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

WIDTH, ROWS, TOKENS = 4, 10, "3,1,4;1;5"


def weights(dtype="f4"):
    """Return the weights of the model of `nodes`."""
    rng = np.random.default_rng(7)
    shapes = {"embed": (ROWS, WIDTH), "k": (WIDTH, WIDTH), "head": (WIDTH, ROWS)}
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()} | {"axis": np.array([1])}


def nodes():
    """Return a model of one layer, which adds the sum of all keys: (kind, modules, inputs, output, attributes)."""
    layer = ["model", "layers.0"]
    attention = [*layer, "self_attn"]
    return [
        ("Gather", ["model", "embed_tokens"], ["embed", "input_ids"], "x", {}),
        ("Identity", layer, ["x"], "same", {}),
        ("MatMul", [*attention, "k_proj"], ["same", "k"], "key", {}),
        ("Concat", attention, ["past_key_values.0.key", "key"], "present.0.key", {"axis": 1}),
        ("ReduceSum", attention, ["present.0.key", "axis"], "sum", {}),
        ("Shape", attention, ["sum"], "shape", {}),
        ("Add", layer, ["same", "sum"], "y", {}),
        ("MatMul", ["lm_head"], ["y", "head"], "logits", {}),
    ]


def build(path, listed=None, style="names", given=None, dtype="f4", domains=(), **save):
    """Write a model whose nodes have their modules in their names, or their metadata (scopes), or nowhere (gone)."""
    made = []
    for i, (kind, modules, inputs, output, more) in enumerate(listed or nodes()):
        node = helper.make_node(kind, inputs, output.split(), domain="com.microsoft" if kind in domains else "", **more)
        if style == "names":
            node.name = "/".join(["", *modules, kind])
        if style == "scopes":
            chain = [".".join(modules[: k + 1]) for k in range(len(modules))]
            node.metadata_props.add(key=graph.SCOPES, value=str(["", *chain, f"node_{i}"]))
        made.append(node)
    floating = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    given = given or {"input_ids": [1, "t"], "past_key_values.0.key": [1, "p", WIDTH]}
    kinds = {n: floating if "past" in n or "embeds" in n else TensorProto.INT64 for n in given}
    inputs = [helper.make_tensor_value_info(n, kinds[n], shape) for n, shape in given.items()]
    every = {name for node in made for name in node.output}
    outputs = [helper.make_tensor_value_info(n, floating, None) for n in ("logits", "present.0.key") if n in every]
    held = [numpy_helper.from_array(value, name) for name, value in weights(dtype).items()]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(
        helper.make_model(
            helper.make_graph(made, "g", inputs, outputs, held),
            opset_imports=opsets,
            ir_version=9,
            producer_name="test",
        ),
        path,
        **save,
    )
    return path


@unittest.skipUnless(HAVE, "needs onnx and onnxruntime: pip install -r fixtures/wild/onnx/requirements.txt")
class Onnx(TestCase):
    """The command, in this process."""

    def setUp(self):
        super().setUp()
        self.model, self.out = self.folder / "model.onnx", self.folder / "port.safetensors"

    def run_with(self, *more, tokens=TOKENS, model=None):
        """Run the command; return exit code, stdout, stderr."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main([str(model or self.model), "--tokens", tokens, "--out", str(self.out), *more])
        return code, out.getvalue(), err.getvalue()

    def recorded(self, *more, **change):
        """Run the command, which has to succeed; return the trace's tensors, in order."""
        code, _, err = self.run_with(*more, **change)
        self.assertEqual(code, 0, err)
        with trace.Reader(self.out) as reader:
            self.assertEqual(reader.status, "complete")
            self.metadata = reader.metadata
            return {name: reader.array(name) for name in reader.tensors}

    def test_names_and_numbers(self):
        want = ["input_ids", "position_ids", "embed_tokens", "layers.0.self_attn.k_proj", "present.0.key"]
        want += ["layers.0.self_attn", "layers.0.out", "logits"]
        w = weights()
        for style in ("names", "scopes"):
            with self.subTest(style):
                build(self.model, style=style)
                seen = self.recorded()
                self.assertEqual([n for n in seen if "/" not in n], want)
                self.assertEqual(len(seen), 3 * len(want))
                x = w["embed"][[3, 1, 4, 1, 5]]
                keys = x @ w["k"]
                past = 0
                for index, (begin, end) in enumerate(((0, 3), (3, 4), (4, 5))):
                    at = {name: seen[trace.key(name, index)][0] for name in want}
                    self.assertEqual(at["position_ids"].tolist(), list(range(begin, end)))
                    np.testing.assert_array_equal(at["embed_tokens"], x[begin:end])
                    np.testing.assert_allclose(at["layers.0.self_attn.k_proj"], keys[begin:end], rtol=1e-5)
                    np.testing.assert_allclose(at["present.0.key"], keys[:end], rtol=1e-5)
                    y = x[begin:end] + keys[:end].sum(0)
                    np.testing.assert_allclose(at["layers.0.out"], y, rtol=1e-5, atol=1e-6)
                    np.testing.assert_allclose(at["logits"], y @ w["head"], rtol=1e-4, atol=1e-5)
                    past = end
                self.assertEqual(past, 5)
        self.assertEqual(self.metadata["tracediff.dtype"], "float32")
        self.assertEqual(json.loads(self.metadata["onnx.values"])["layers.0.out"], "y")

    def test_groups_are_the_same_file(self):
        build(self.model)
        self.recorded()
        whole = self.out.read_bytes()
        for n in ("1", "2", "4"):
            self.recorded("--at-once", n)
            self.assertEqual(self.out.read_bytes(), whole, n)

    def test_everything(self):
        build(self.model)
        seen = self.recorded("--all")
        self.assertEqual(seen["layers.0.self_attn.Shape"].tolist(), [1, 1, 4])
        np.testing.assert_array_equal(seen["layers.0.Identity"], seen["embed_tokens"])

    def test_two_results_have_no_name(self):
        # The embedding's module also returns the rows before a factor: the graph does not say which tensor is its
        # result.
        listed = nodes()
        listed.insert(1, ("Neg", ["model", "embed_tokens"], ["x"], "negative", {}))
        listed[-2][2].append("unused")
        listed[-2] = ("Sum", ["model", "layers.0"], ["same", "sum", "negative"], "y", {})
        build(self.model, listed)
        seen = self.recorded()
        self.assertNotIn("embed_tokens", seen)
        self.assertIn("embed_tokens.Gather", seen)
        self.assertIn("embed_tokens.Neg", seen)

    def test_shared_moves_are_no_results(self):
        # An exporter computes Unsqueeze(x) once, in the first module that has it.
        listed = nodes()
        listed.insert(2, ("Unsqueeze", ["model", "layers.0", "self_attn", "k_proj"], ["x", "axis"], "moved", {}))
        listed.insert(-1, ("Squeeze", ["model", "layers.1"], ["moved", "axis"], "back", {}))
        listed[-1] = ("MatMul", ["lm_head"], ["z", "head"], "logits", {})
        listed.insert(-1, ("Add", ["model", "layers.1"], ["y", "back"], "z", {}))
        build(self.model, listed)
        seen = self.recorded()
        self.assertIn("layers.0.self_attn.k_proj", seen)
        self.assertIn("layers.1.out", seen)

    def test_fused_norms(self):
        listed = nodes()
        norm = ("SkipSimplifiedLayerNormalization", ["model", "norm"], ["x", "y", "scale"], "normed a b added", {})
        listed[-1:] = [
            ("ConstantOfShape", ["model"], ["width"], "ones", {}),
            ("Cos", ["model"], ["ones"], "scale", {}),
            norm,
            ("Add", ["model"], ["normed", "added"], "both", {}),
            ("MatMul", ["lm_head"], ["both", "head"], "logits", {}),
        ]
        listed.insert(0, ("Constant", ["model"], [], "width", {"value_ints": [WIDTH]}))
        build(self.model, listed, domains=("SkipSimplifiedLayerNormalization",))
        code, _, err = self.run_with()
        self.assertEqual(code, 0, err)
        self.assertIn("only the results of fused nodes are recorded: SkipSimplifiedLayerNormalization\n", err)
        with trace.Reader(self.out) as reader:
            self.assertIn("norm", reader.tensors)
            self.assertIn("norm.SkipSimplifiedLayerNormalization.3", reader.tensors)
            self.assertNotIn("Cos", reader.tensors)  # a constant

    def test_several_text_models(self):
        listed = nodes()
        listed.insert(2, ("Neg", ["tower", "layers.0"], ["x"], "seen", {}))
        listed[-2][2][0] = "seen"
        build(self.model, listed)
        names = self.recorded()
        self.assertIn("layers.0.self_attn.k_proj", names)  # the text model has an embedding too
        self.assertIn("tower.layers.0", " ".join(names))

    def test_external_weights(self):
        build(self.model, save_as_external_data=True, location="weights.bin", size_threshold=0)
        inside = self.recorded()
        with mock.patch.object(ort, "SMALL", 9):  # all but the axis of a sum stay where they are
            outside = self.recorded()
        self.assertEqual(inside.keys(), outside.keys())
        np.testing.assert_array_equal(inside["pass2/logits"], outside["pass2/logits"])
        (self.folder / "weights.bin").unlink()
        code, out, err = self.run_with()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("its weights are in weights.bin, which is not there\nhint: copy that file", err)

    def test_half_precision(self):
        build(self.model, dtype="f2")
        seen = self.recorded()
        self.assertEqual(seen["layers.0.out"].dtype, np.float16)
        self.assertEqual(self.metadata["tracediff.dtype"], "float16")

    def test_bfloat16(self):
        listed = nodes()
        listed[-1:] = [
            ("Cast", ["model", "norm"], ["y"], "narrow", {"to": TensorProto.BFLOAT16}),
            ("Cast", ["model"], ["narrow"], "wide", {"to": TensorProto.FLOAT}),
            ("MatMul", ["lm_head"], ["wide", "head"], "logits", {}),
        ]
        build(self.model, listed)
        seen = self.recorded()
        bits = seen["layers.0.out"].view("u4").astype("u8")
        rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype("u4").view("f4")
        np.testing.assert_array_equal(seen["norm"], rounded)
        with trace.Reader(self.out) as reader:
            self.assertEqual(reader.tensors["norm"].dtype, "BF16")

    def test_optimisations_that_change_numbers_are_said(self):
        build(self.model)
        self.assertNotIn("optimisations", self.run_with()[2])
        honest = command._as_it_is  # this model has no fused nodes, so the optimised outputs are made different

        def other(*args):
            return {key: value * np.float32(1.5) for key, value in honest(*args).items()}

        with mock.patch.object(command, "_as_it_is", other):
            err = self.run_with()[2]
        self.assertIn("logits differs with onnxruntime's optimisations, which are off here: relative L2 5.0e-01", err)

    def test_wrong_input(self):
        ids, past = [1, "t"], {"past_key_values.0.key": [1, "p", WIDTH]}
        plain = [n for n in nodes() if "past_key_values.0.key" not in n[2]]
        plain = [(k, m, ["key" if i == "present.0.key" else i for i in g], o, a) for k, m, g, o, a in plain]
        models = {
            "not understood": ({"given": {"input_ids": ids, "mystery": [1], **past}}, "input 'mystery'"),
            "no ids": ({"given": {"inputs_embeds": [1, "t", WIDTH], **past}, "listed": [
                ("Neg", ["model", "embed_tokens"], ["inputs_embeds"], "x", {}), *nodes()[1:]
            ]}, "no input is the token ids"),
            "no names": ({"style": "gone"}, "its nodes do not say in which modules they stand"),
            "fixed tokens": ({"given": {"input_ids": [1, 7], **past}}, "takes [1, 7], and the tokens make [1, 3]"),
            "a batch": ({"given": {"input_ids": [2, "t"], "past_key_values.0.key": [2, "p", WIDTH]}}, "takes [2,"),
            "fixed cache": ({"given": {"input_ids": ids, "past_key_values.0.key": [1, 8, WIDTH]}}, "which axis has"),
            "no cache": ({"listed": plain, "given": {"input_ids": ids}}, "3 passes, and the model has no cache"),
        }  # fmt: skip
        for reason, (how, words) in models.items():
            with self.subTest(reason):
                build(self.model, **how)
                self.check_refused(words)
        self.model.write_bytes(b"no model")
        self.check_refused("not an ONNX model")
        self.model.write_bytes(b"")
        self.check_refused("it has no nodes")
        self.model.unlink()
        self.check_refused("no such file")
        build(self.model)
        self.check_refused("'x' is not a token id", tokens="3,x")
        self.check_refused("--at-once is at least 1", "--at-once", "0")

    def check_refused(self, words, *more, **change):
        """Fail unless the command prints one line with `words`, and at most one hint, and writes nothing."""
        code, out, err = self.run_with(*more, **change)
        self.assertEqual((code, out), (2, ""), err)
        self.assertTrue(err.startswith("tracediff.onnx: "), err)
        self.assertIn(words, err.splitlines()[0])
        self.assertLessEqual(len(err.splitlines()), 2)
        self.assertFalse(self.out.exists())

    def test_own_names(self):
        build(self.model, style="gone")
        self.assertIn("MatMul_1", [*self.recorded("--own-names"), "MatMul_1"])

    def test_a_token_that_is_not_in_the_vocabulary(self):
        build(self.model)
        code, out, err = self.run_with(tokens="3,99")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("onnxruntime: ", err)
        self.assertIn("99", err)


class Packages(TestCase):
    """What is said where onnx is not installed."""

    def test_missing(self):
        err = io.StringIO()
        with mock.patch.dict("sys.modules", {"onnx": None}), contextlib.redirect_stderr(err):
            code = command.main(["model.onnx", "--tokens", "1", "--out", "x.safetensors"])
        self.assertEqual(code, 2)
        self.assertEqual(err.getvalue(), f"tracediff.onnx: onnx: not installed\nhint: {ort.PACKAGES}\n")

    def test_help(self):
        out = io.StringIO()
        with self.assertRaises(SystemExit) as end, contextlib.redirect_stdout(out):
            command.main(["--help"])
        self.assertEqual(end.exception.code, 0)
        for words in ("example:", "--tokens", "exit code:", "tracediff map"):
            self.assertIn(words, out.getvalue())


if __name__ == "__main__":
    unittest.main()
