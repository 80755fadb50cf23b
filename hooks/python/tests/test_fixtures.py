"""The checks of fixtures/make.py find each kind of error."""

import contextlib
import io
import math
import pathlib
import shutil
import sys
import unittest

import numpy
from common import ROOT, TestCase
from tracediff import trace

FIXTURES = ROOT / "fixtures"
sys.path.insert(0, str(FIXTURES))

import checkpoints
import decoders
import gemma3n
import goldens
import make
import properties

HELLO = FIXTURES / "golden" / "gemma3n-tiny" / "hello.float32.safetensors"


def alter(path, change):
    """Change the values of one tensor of a trace."""
    with trace.Reader(path) as reader:
        array, raw = reader.array("layers.6.out").copy(), reader.read("layers.6.out")
    change(array.reshape(-1))
    if array.nbytes == 2 * len(raw):  # bfloat16, read as float32
        array = array.reshape(-1).view("<u2")[1::2]
    data = path.read_bytes()
    assert data.count(raw) == 1, "the tensor's bytes are found"
    path.write_bytes(data.replace(raw, array.tobytes()))


class Differences(TestCase):
    """Comparing a golden with a new copy."""

    def changed(self, change):
        """Return a copy of a golden in which one tensor's values were changed."""
        path = pathlib.Path(shutil.copy(HELLO, self.folder / "again.safetensors"))
        alter(path, change)
        return goldens.differences(path, HELLO)

    def test_nothing(self):
        self.assertEqual(goldens.differences(HELLO, HELLO), ([], 422))

    def test_one_unit_is_listed(self):
        found, tensors = self.changed(one_unit)
        self.assertEqual([(d.name, d.unequal, d.elements) for d in found], [("layers.6.out", 1, 4 * 3 * 32)])
        self.assertEqual(tensors, 422)
        self.assertGreater(found[0].relative, 0)

    def test_another_form(self):
        found, _ = goldens.differences(HELLO.with_name("what.float32.safetensors"), HELLO)
        self.assertIn(goldens.Difference("input_ids", 0, 0, math.inf), found)


class Equality(TestCase):
    """Differences that make.py --check accepts: only differences of MKL in float32 on another maker's processor."""

    def judged(self, change=None, producer=(), dtype="float32"):
        """Return the verdict of make.py on a golden after changes of a tensor's values or of words in its producer."""
        golden = HELLO.with_name(f"hello.{dtype}.safetensors")
        path = pathlib.Path(shutil.copy(golden, self.folder / "again.safetensors"))
        if change:
            alter(path, change)
        for old, new in producer:
            data = path.read_bytes()
            self.assertEqual((len(old), data.count(old)), (len(new), 1))
            path.write_bytes(data.replace(old, new))
        with contextlib.redirect_stdout(io.StringIO()):
            return make._compare_golden(path, golden, dtype)

    ELSEWHERE = ((b"AMD EPYC", b"NEW CHIP"),)

    def test_the_same(self):
        self.assertEqual(self.judged(), (True, []))
        self.assertEqual(self.judged(producer=self.ELSEWHERE), (True, []))

    def test_one_unit(self):
        same, (why,) = self.judged(one_unit)
        self.assertFalse(same)
        self.assertIn("1 tensors differ, layers.6.out", why)

    def test_one_unit_elsewhere(self):
        self.assertEqual(self.judged(one_unit, self.ELSEWHERE), (False, []))

    def test_one_bit_elsewhere_of_another_dtype(self):
        for dtype in ("bfloat16", "float16"):
            with self.subTest(dtype):
                same, (why,) = self.judged(lowest_bit, self.ELSEWHERE, dtype)
                self.assertFalse(same)
                self.assertIn("have to be equal", why)

    def test_a_large_change_elsewhere(self):
        for change in (scaled, spoiled):
            with self.subTest(change.__name__):
                same, (why,) = self.judged(change, self.ELSEWHERE)
                self.assertFalse(same)
                self.assertIn("the limit on a processor of NEW is 0.0001", why)

    def test_intel_with_and_without_avx512(self):
        golden = FIXTURES / "golden" / "gemma2-variant" / "prefill.float32.safetensors"
        made, data = goldens.machine(golden), golden.read_bytes()
        self.assertEqual(data.count(b"avx512f"), 1)
        path = self.folder / "again.safetensors"
        path.write_bytes(data.replace(b"avx512f", b"avx999f"))
        found = [goldens.Difference("layers.0.out", 1, 160, 1e-7)]
        self.assertIn("have to be equal", goldens.beyond(found, "float32", made, made))
        self.assertEqual(goldens.beyond(found, "float32", goldens.machine(path), made), "")

    def test_other_kernels(self):
        same, (why,) = self.judged(producer=((b'cpu_capability\\":\\"AVX2', b'cpu_capability\\":\\"AVX9'),))
        self.assertTrue(same, "by chance no bit differs")
        self.assertIn("AVX9 kernels", why)


def one_unit(values):
    values[7] = numpy.nextafter(values[7], numpy.float32(numpy.inf))


def lowest_bit(values):
    values.view(numpy.uint16)[7] ^= 1  # of a float32 that holds a bfloat16 the upper half of the fourth


def scaled(values):
    values *= 1.01


def spoiled(values):
    values[0] = numpy.nan


class Properties(unittest.TestCase):
    """A missing property of the checkpoints is reported."""

    def setUp(self):
        names = [g.name for g in goldens.GOLDENS if g.checkpoint == "gemma3n-tiny"]
        self.runs = {n: properties.read(HELLO.with_name(f"{n}.float32.safetensors")) for n in names}

    def complaints(self, function):
        return list(function(self.runs, gemma3n.TINY.config))

    def spoil(self, name, change):
        for run in self.runs.values():
            run[name] = [change(array) for array in run[name]]

    def test_as_they_are(self):
        for function in properties.of(gemma3n.TINY, together=True):
            self.assertEqual(self.complaints(function), [], function.__name__)

    def test_spoiled(self):
        def shut(gate):
            return gate * [[[1]] if gate.shape[1] == 1 else [[0]] + [[1]] * (gate.shape[1] - 1)]

        cases = (
            (properties.finite_and_alive, "layers.2.laurel", lambda x: x * 0 + 3),
            (properties.finite_and_alive, "layers.2.laurel", lambda x: x * numpy.inf),
            (properties.logits, "lm_head", lambda x: x / 3),
            (
                properties.attention,
                "layers.2.self_attn.probs_f32",
                lambda x: (x == x.max(-1, keepdims=True)) + 1e-9 * x,
            ),
            (properties.attention, "layers.2.self_attn.probs_f32", lambda x: (x > 0) / (x > 0).sum(-1, keepdims=True)),
            (properties.altup, "layers.4.altup.predict.modality_router", lambda x: x / 50),
            (properties.altup, "layers.4.altup.correction_coefs", lambda x: x * 9),
            (properties.altup, "layers.4.post_attention_layernorm", lambda x: x / 100),
            (properties.gates, "layers.0.mlp.gate_sparse", shut),
            (properties.gates, "layers.1.mlp.gate_sparse", lambda x: x + 1),
            (properties.gates, "layers.5.per_layer_input_gate", lambda x: x * 9),
            (properties.window, "input_ids", lambda x: x[:, :3]),
            (properties.tables, "input_ids", lambda x: x % 1000),
            (properties.greedy, "logits", lambda x: -x),
        )
        for function, name, change in cases:
            with self.subTest(f"{function.__name__} {name}"):
                self.setUp()
                self.spoil(name, change)
                self.assertNotEqual(self.complaints(function), [])


class Special(unittest.TestCase):
    """A missing property is reported also where only one checkpoint has the property."""

    def test_as_it_is_and_spoiled(self):
        cases = (
            ("gemma3n-odd", "altup.init.magnitude.2", lambda x: x + 1),
            ("gemma3n-odd", "altup.final.magnitude.1", lambda x: x * 0),
            ("gemma3n-variant", "layers.0.mlp.sparsity.mean", lambda x: x / 50),
            ("gemma2-variant", "layers.1.mlp.gate_proj", abs),
        )
        for checkpoint, name, change in cases:
            for dtype in goldens.MOST:
                with self.subTest(f"{checkpoint} {name} {dtype}"):
                    made = goldens.of(checkpoint, dtype)
                    runs = {g.name: properties.read(goldens.path(FIXTURES, g, dtype)) for g in made}
                    (function,) = properties.SPECIAL[checkpoint]
                    self.assertEqual(list(function(runs, {})), [])
                    for run in runs.values():
                        run[name] = [change(array) for array in run[name]]
                    self.assertNotEqual(list(function(runs, {})), [])


class Decoders(TestCase):
    """The plain decoders have the properties that they test, and a spoiled property is reported."""

    def runs(self, fixture, dtype="float32"):
        return {g.name: properties.read(goldens.path(FIXTURES, g, dtype)) for g in goldens.of(fixture.name, dtype)}

    def test_spoiled(self):
        cases = (
            (properties.scores, decoders.GEMMA2, "layers.1.self_attn.scores", lambda x: x / 9),
            (properties.scores, decoders.GEMMA3, "layers.1.self_attn.scores", lambda x: x / 9),
            (properties.logits, decoders.GEMMA2, "lm_head", lambda x: x * 9),
            (properties.residuals, decoders.LLAMA, "layers.2.attn_residual", lambda x: x * 9),
            (properties.residuals, decoders.QWEN3, "layers.0.out", lambda x: x * 9),
            (properties.activations, decoders.GEMMA1, "layers.0.mlp.gate_proj", lambda x: x / 9),
            (properties.activations, decoders.QWEN2, "layers.0.mlp.act_fn", lambda x: x * (x[..., :1] < x[..., 1:2])),
            (properties.rotary, decoders.QWEN2, "rotary.cos", lambda x: x**2),
            (properties.window, decoders.QWEN2, "input_ids", lambda x: x[:, :7]),
            (properties.window, decoders.LLAMA, "input_ids", lambda x: x[:, :7]),
        )
        for function, fixture, name, change in cases:
            with self.subTest(f"{function.__name__} {fixture.name} {name}"):
                runs = self.runs(fixture)
                self.assertEqual(list(function(runs, fixture.text)), [])
                for run in runs.values():
                    run[name] = [change(array) for array in run[name]]
                self.assertNotEqual(list(function(runs, fixture.text)), [])

    def test_rotary_that_is_not_scaled_or_not_of_its_type(self):
        for fixture in (decoders.GEMMA3, decoders.GEMMA3_MULTIMODAL):
            runs = self.runs(fixture)
            for run in runs.values():
                run["rotary.full.cos"] = run["rotary.sliding.cos"]
            self.assertIn("rotary.sliding.cos off the full one is 0", " ".join(properties.rotary(runs, fixture.text)))
            plain = fixture.text["rope_parameters"] | {decoders.F: {"rope_type": "default", "rope_theta": 1e6}}
            found = list(properties.rotary(self.runs(fixture), fixture.text | {"rope_parameters": plain}))
            self.assertIn("rotary.full.cos off the unscaled one", " ".join(found))
        plain = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}
        found = list(properties.rotary(self.runs(decoders.LLAMA), decoders.LLAMA.text | plain))
        self.assertIn("rotary.cos off the unscaled one", " ".join(found))

    def test_bands_that_are_empty(self):
        rope, inverse = decoders.LLAMA.text["rope_parameters"], [1.0, 0.3, 0.1, 0.03]
        for field, value, missing in (
            ("high_freq_factor", 9.0, "keeps"),
            ("low_freq_factor", 0.01, "divides"),
            ("low_freq_factor", 1.1, "goes between in"),
            ("original_max_position_embeddings", 14, "do not pass the length"),
        ):
            found = " ".join(properties.bands(rope | {field: value}, numpy.array(inverse), 14))
            self.assertIn(missing, found)
        self.assertEqual(list(properties.bands(rope, numpy.array(inverse), 14)), [])

    def test_parameters_that_are_idle(self):
        from safetensors.numpy import save_file

        good = {"norm.weight": [0.3, -0.3, 0.1], "q_proj.bias": [0.3, -0.3, 0.1], "q_proj.weight": [[0.1], [0.2]]}
        path = self.folder / "w.safetensors"
        for name, bad in (
            ("", None),
            ("norm.weight", [0.3, 0.3, 0.3]),
            ("norm.weight", [0.3, 0.29, 0.31]),
            ("q_proj.bias", [0.01, -0.01, 0.02]),
            ("q_proj.weight", [[0.1], [0.0]]),
        ):
            made = good | ({name: bad} if name else {})
            save_file({k: numpy.array(v, numpy.float32) for k, v in made.items()}, path)
            found = list(properties.parameters(path, gain=1))
            self.assertEqual(bool(found), bool(name), found)

    def test_settings_are_awkward(self):
        texts = [f.text for f in decoders.FIXTURES]
        for text in texts:
            self.assertNotEqual(text.get("query_pre_attn_scalar"), text.get("head_dim", 0))
        ratios = {t["num_attention_heads"] // t["num_key_value_heads"] for t in texts}
        self.assertEqual(ratios, {1, 2, 3})
        own = [t for t in texts if t.get("head_dim", 0) * t["num_attention_heads"] not in (0, t["hidden_size"])]
        self.assertEqual(len(own), 6)


class Weights(unittest.TestCase):
    """The numbers of the checkpoints."""

    def test_bell_of_deviation_one(self):
        values = checkpoints.normal("test", 100_000)
        self.assertAlmostEqual(float(values.mean()), 0, delta=0.02)
        self.assertAlmostEqual(float(values.std()), 1, delta=0.02)
        self.assertGreater(float(values.abs().max()), 3)

    def test_a_name_gives_its_numbers(self):
        self.assertTrue((checkpoints.normal("a", 9) == checkpoints.normal("a", 9)).all())
        self.assertFalse((checkpoints.normal("a", 9) == checkpoints.normal("b", 9)).any())


if __name__ == "__main__":
    unittest.main()
