"""Hooks and the recorder, on a toy model in which every way to go wrong can be arranged."""

import functools
import importlib
import inspect
import types
import unittest

import torch

from common import TestCase
from tracediff import attention, model, order, record, sources
from tracediff.errors import CaptureFailed

WIDTH = 4


class Block(torch.nn.Module):
    """A layer with an inner module that runs twice; the layer changes its input in place."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(WIDTH, WIDTH)
        self.pair = Pair()

    def scale(self, value, *, by=2.0):
        return value * by

    def forward(self, x, mask=None, **rest):
        x = self.inner(x)
        x = self.inner(x)
        y = self.scale(x, by=3.0)
        x += 1  # after inner and scale have shown it
        self.pair(x, layer_type="first")
        self.pair(y, layer_type="second")
        return y, x


class Pair(torch.nn.Module):
    """A module with two outputs, told apart by an argument."""

    def forward(self, x, layer_type):
        return x + (1 if layer_type == "first" else 2), -x


class Text(torch.nn.Module):
    """The model below the head."""

    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x, by_keyword, extra=None):
        if by_keyword:
            return self.block(x=x, mask=x * 0, flag=extra)
        return self.block(x, x * 0, flag=extra)


def entry(name, source, shape=(1, "T", WIDTH), dtype="", inputs=(), op=None):
    """Make an entry."""
    refs = tuple(order.Ref(i) for i in inputs)
    return order.Entry(name, 0, 1, op or {"kind": "x"}, refs, (), shape, dtype, source)


ENTRIES = [
    entry("x", order.Source("in", "block", "x")),
    entry("mask", order.Source("in", "block", "mask")),
    entry("once", order.Source("out", "block.inner")),
    entry("twice", order.Source("out", "block.inner", call=1)),
    entry("twice.in", order.Source("in", "block.inner", "input", call=1)),
    entry("scale.value", order.Source("call", "block", "scale", arg="value")),
    entry("scale", order.Source("call", "block", "scale")),
    entry("sum", order.Source("derived"), inputs=("twice", "once"), op={"kind": "add"}),
    entry("pair.second", order.Source("out", "block.pair", item=1, when="second")),
    entry("pair.first", order.Source("out", "block.pair", item=0, when="first")),
    entry("out", order.Source("out", "block", item=1)),
]


class Toy(TestCase):
    """A capture of the toy model."""

    def setUp(self):
        super().setUp()
        torch.manual_seed(1)
        self.text = Text()
        self.loaded = model.Loaded(self.text, self.text, types.ModuleType("toy"), "toy", "", {}, "float32", "cpu")
        self.x = torch.randn(1, 3, WIDTH)

    def run_with(self, entries, by_keyword=False, plan=None, before=None):
        """Run one pass and return the recorded tensors, in order."""
        got = {}
        listed = order.Order({}, "{}", tuple(entries))
        recorder = record.Recorder(self.loaded, listed, plan or entries, lambda e, t: got.__setitem__(e.name, t))
        with sources.Hooks(self.loaded, entries, recorder.wanted, recorder.fire) as hooks, torch.no_grad():
            recorder.begin(tokens=3, past=0)
            hooks.begin({})
            if before:
                before()
            self.text(self.x, by_keyword)
            recorder.end()
        return got

    def expect_failure(self, pattern, entries, **kwargs):
        with self.assertRaisesRegex(CaptureFailed, pattern):
            self.run_with(entries, **kwargs)

    def test_every_kind_of_source_positional_and_by_keyword(self):
        linear = self.text.block.inner
        with torch.no_grad():
            once = linear(self.x)
            twice = linear(once)
        want = {
            "x": self.x, "mask": self.x * 0, "once": once, "twice": twice, "twice.in": once, "scale.value": twice,
            "scale": twice * 3, "sum": twice + once, "pair.second": -twice * 3, "pair.first": twice + 1 + 1,
            "out": twice + 1,
        }  # fmt: skip
        for by_keyword in (False, True):
            got = self.run_with(ENTRIES, by_keyword)
            self.assertEqual(list(got), list(want), "in the order of the list")
            for name, tensor in want.items():
                self.assert_same(got[name], tensor, name)

    def test_hooks_leave_nothing_behind(self):
        before = dict(vars(self.text.block))
        self.run_with(ENTRIES)
        self.assertEqual(vars(self.text.block).keys(), before.keys())
        modules = list(self.text.modules())
        self.assertFalse([m for m in modules if m._forward_hooks or m._forward_pre_hooks])
        self.expect_failure("no module 'gone'", [*ENTRIES, entry("gone", order.Source("out", "gone"))])
        self.assertFalse([m for m in modules if m._forward_hooks or m._forward_pre_hooks])

    def test_never_fired(self):
        self.text.block.unused = torch.nn.Linear(1, 1)
        never = entry("never", order.Source("out", "block.unused"))
        self.expect_failure(r"never: out:block.unused never fired$", [*ENTRIES, never])
        later = entry("later", order.Source("out", "block.inner", call=2))
        self.expect_failure(r"later: out:block.inner#2 never fired$", [*ENTRIES, later])
        third = entry("third", order.Source("out", "block.pair", when="third"))
        self.expect_failure(r"third: out:block.pair\[third\] never fired", [*ENTRIES, third])

    def test_fired_more_often_than_listed(self):
        first = [e for e in ENTRIES if e.name in ("x", "once")]
        self.expect_failure("out:block.inner: call 2 in one pass, the order has 1", first)
        # The same list knows two calls, although only the first is wanted.
        got = self.run_with(ENTRIES, plan=first)
        self.assertEqual(list(got), ["x", "once"])

    def test_fired_twice_for_one_argument(self):
        def again():
            self.text.block.pair(self.x, "first")

        self.expect_failure("fired twice in one pass", ENTRIES, before=again)

    def test_outside_a_pass(self):
        listed = order.Order({}, "{}", tuple(ENTRIES))
        recorder = record.Recorder(self.loaded, listed, ENTRIES, lambda *_: None)
        with self.assertRaisesRegex(CaptureFailed, "outside a pass"):
            recorder.fire(ENTRIES[0], self.x)

    def test_does_not_fit(self):
        x = order.Source("in", "block", "x")
        cases = {
            "has shape": entry("x", x, shape=(1, "T", 5)),
            r"has shape \[1, 3, 4\], want \[1, 4, 3\]": entry("x", x, shape=(1, 4, "T")),  # as many elements
            "is torch.float32, want torch.int64": entry("x", x, dtype="int64"),
            "no argument 'y'": entry("x", order.Source("in", "block", "y")),
            "is NoneType, not a tensor": entry("x", order.Source("in", "block", "flag")),
            "has 2 items": entry("x", order.Source("out", "block", item=2)),
            "no such method": entry("x", order.Source("call", "block", "none")),
            "which is not recomputed here": entry("x", order.Source("derived"), op={"kind": "softmax"}),
        }
        for pattern, wrong in cases.items():
            with self.subTest(pattern):
                self.expect_failure(pattern, [wrong])

    def test_a_last_axis_may_be_split(self):
        split = entry("x", order.Source("in", "block", "x"), shape=(1, "T", 2, 2))
        self.assert_same(self.run_with([split])["x"], self.x.reshape(1, 3, 2, 2), "x")

    def test_last_positions(self):
        last = entry("x", order.Source("in", "block", "x", last_t=True), shape=(1, "T", WIDTH))
        whole, self.x = self.x, torch.randn(1, 5, WIDTH)  # five keys in a pass of three tokens
        self.assertEqual(whole.shape[1], 3)
        self.assert_same(self.run_with([last])["x"], self.x[:, 2:], "x")

    def test_heads_that_come_before_tokens(self):
        swapped = entry("x", order.Source("in", "block", "x", heads_first=True), shape=(1, WIDTH, "T"))
        self.assert_same(self.run_with([swapped])["x"], self.x.transpose(1, 2).contiguous(), "x")


class Attention(TestCase):
    """The wrapper around the attention function."""

    def call(self, function):
        module = types.SimpleNamespace(head_dim=4, num_key_value_groups=2, layer_idx=3, training=False)
        torch.manual_seed(2)
        q, k, v = torch.randn(1, 4, 5, 4), torch.randn(1, 2, 7, 4), torch.randn(1, 2, 7, 4)
        mask = torch.zeros(1, 1, 5, 7).masked_fill(torch.rand(1, 1, 5, 7) < 0.3, torch.finfo(torch.float32).min)
        return function(module, q, k, v, mask, scaling=0.7, dropout=0.0, sliding_window=3)

    def setUp(self):
        super().setUp()
        from transformers.models.gemma3n import modeling_gemma3n

        self.code = modeling_gemma3n
        self.original = modeling_gemma3n.eager_attention_forward

    def test_returns_the_original_result_itself(self):
        results, shown = [], []

        def original(*args, **kwargs):
            results.append(self.original(*args, **kwargs))
            return results[-1]

        original.__signature__ = inspect.signature(self.original)
        wrapped = attention.wrap(original, self.code.repeat_kv, lambda module, tensors: shown.append((module, tensors)))
        self.assertIs(self.call(wrapped), results[0])
        ((module, tensors),) = shown
        self.assertEqual(module.layer_idx, 3)
        self.assertEqual(tuple(tensors), attention.ROLES)
        self.assert_same(tensors["probs"], results[0][1], "probs")

    def test_every_familys_function(self):
        for family in ("gemma3", "gemma2", "gemma", "llama", "qwen2", "qwen3"):
            code = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
            for cap in (None, 0.9) if family in ("gemma3", "gemma2") else (None,):
                self.where = f"{family} softcap {cap}"
                function = functools.partial(code.eager_attention_forward, **({"softcap": cap} if cap else {}))
                want, shown = self.call(function), []
                wrapped = attention.wrap(function, code.repeat_kv, lambda _, tensors, to=shown: to.append(tensors))
                self.assert_same(self.call(wrapped)[0], want[0], "output")
                self.assertEqual("scores_softcap" in shown[0], cap is not None)
                self.assert_same(shown[0]["probs"], want[1], "probs")
                if cap:
                    self.assertGreater(float(shown[0]["scores"].abs().max()), cap, "the cap is reached")
                    self.assert_same(torch.tanh(shown[0]["scores"] / cap) * cap, shown[0]["scores_softcap"], "capped")

    def test_fails_when_the_steps_are_not_the_models(self):
        def scaled_twice(*args, **kwargs):
            return self.original(*args, **kwargs | {"scaling": 0.7000001})

        def output_off(*args, **kwargs):
            output, probs = self.original(*args, **kwargs)
            output[0, 0, 0, 0] = torch.nextafter(output[0, 0, 0, 0], torch.tensor(torch.inf))
            return output, probs

        def capped(*args, **kwargs):  # and does not say so
            return self.original(*args, **kwargs | {"softcap": 50.0})

        for function, name in ((scaled_twice, "probs|output"), (output_off, "output"), (capped, "probs|output")):
            function.__signature__ = inspect.signature(self.original)
            wrapped = attention.wrap(function, self.code.repeat_kv, lambda *_: self.fail("shown"))
            with self.subTest(name), self.assertRaisesRegex(CaptureFailed, f"the ({name}) of the steps"):
                self.call(wrapped)

    def test_bits(self):
        nan, zero = torch.tensor([float("nan")]), torch.tensor([0.0])
        self.assertTrue(attention.same_bits(nan, nan.clone()))
        self.assertFalse(attention.same_bits(zero, -zero))
        self.assertFalse(attention.same_bits(zero, zero.to(torch.bfloat16)))
        self.assertFalse(attention.same_bits(zero, zero.reshape(1, 1)))


if __name__ == "__main__":
    unittest.main()
