"""tracediff.recording in a user's script: ports, encoders, refinement steps, code in checkpoints."""

import contextlib
import gc
import io
import json
import os
import re
import sys
import unittest
from unittest import mock

import torch
from safetensors.torch import load_file
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import evaluate
from common import ROOT, TestCase, python, tensors
import tracediff
from tracediff import attention, errors, hf, layers, program_file, trace
from tracediff import session as sessions
from tracediff.program import Recording

sys.path[:0] = [str(ROOT / "fixtures"), str(ROOT / "fixtures" / "anymodel")]
IDS = [2, 17, 29, 41, 7]


def program(path):
    """Return the program of a trace."""
    return json.loads(sessions.beside(path).read_text())


def sources(one, op):
    """Return the source lines of the steps of one operation."""
    return {one["lines"][line["at"]] for _, line in evaluate.expand(one) if line.get("op") == op}


class Doubles(TorchDispatchMode):
    """An engine that replaces an operation: sigmoid is twice as large."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * 2 if func is torch.ops.aten.sigmoid.default else out


class Unseen(TestCase):
    """attention.unseen hides operations from recordings, and from no other mode."""

    def test_nothing_goes_through_the_recording(self):
        session, heard = sessions.Session(nn.Linear(3, 3)), []
        x, dispatch = torch.ones(3), Recording.__torch_dispatch__

        def hears(self, func, *args, **kwargs):
            heard.append(func)
            return dispatch(self, func, *args, **kwargs)

        with mock.patch.object(Recording, "__torch_dispatch__", hears), session.recording.running():
            with attention.unseen():
                torch.sigmoid(x)
            self.assertEqual(heard, [])
            torch.sigmoid(x)
        self.assertEqual(heard, [torch.ops.aten.sigmoid.default])

    def test_the_mode_comes_back_behind_an_error(self):
        session = sessions.Session(nn.Linear(3, 3))
        with session.recording.running():
            before = _get_current_dispatch_mode_stack()
            with contextlib.suppress(ValueError), attention.unseen():
                self.assertEqual(_get_current_dispatch_mode_stack(), before[:-1])
                raise ValueError
            self.assertEqual(_get_current_dispatch_mode_stack(), before)
            self.assertFalse(session.recording.quiet)

    def test_objects_that_were_there_are_frozen_meanwhile(self):
        model = nn.Linear(3, 3)
        counts = []
        with tracediff.recording(model, self.folder / "run.safetensors"), torch.no_grad():
            counts.append(gc.get_freeze_count())
            model(torch.ones(1, 3))
        counts.append(gc.get_freeze_count())
        gc.freeze()
        frozen = gc.get_freeze_count()
        try:
            with tracediff.recording(model, self.folder / "run.safetensors"), torch.no_grad():
                model(torch.ones(1, 3))
            self.assertGreaterEqual(gc.get_freeze_count(), frozen // 2, "who froze objects keeps them so")
        finally:
            gc.unfreeze()
        self.assertGreater(counts[0], 1000)
        self.assertEqual(counts[1], 0)

    def test_engines_go_on(self):
        model = nn.Linear(3, 3)
        session = sessions.Session(model)
        x = torch.tensor([0.0, 1.0, -1.0])
        with Doubles(), session.recording.running(), torch.no_grad():
            seen = torch.sigmoid(model(x))
            before = len(session.recording.steps)
            with attention.unseen():
                hidden = torch.sigmoid(model(x))
            self.assertEqual(len(session.recording.steps), before)
            again = torch.sigmoid(model(x))
        self.assertGreater(before, 1)
        self.assertGreater(len(session.recording.steps), before, "the recording goes on behind it")
        with torch.no_grad():
            plain = torch.sigmoid(model(x))
        for one in (seen, hidden, again):
            self.assert_same(one, plain * 2, "the engine's sigmoid")

    def test_one_within_another(self):
        session = sessions.Session(nn.Linear(3, 3))
        with session.recording.running():
            with attention.unseen():
                with attention.unseen():
                    pass
                self.assertTrue(session.recording.quiet)
            self.assertFalse(session.recording.quiet)


class Scripts(TestCase):
    """Models that are not of transformers."""

    def wren(self):
        """Return the checkpoint of a model that no library knows."""
        done = python("import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
                      str(ROOT / "fixtures" / "anymodel" / "make.py"), str(self.folder / "wren"))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / "wren"

    def test_both_sides(self):
        import port

        folder, out = self.wren(), self.folder / "mine.safetensors"
        model = port.Port(load_file(folder / "model.safetensors")).eval()
        with torch.no_grad(), tracediff.recording(model, out, checkpoint=folder):
            logits = model(torch.tensor([IDS]))
        made, mine = tensors(out), program(out)
        self.assert_same(made["output"], logits, "the port's output")
        self.assertIn("layers.1.q_rope", made)
        self.assertEqual({line.partition(":")[0] for line in mine["lines"]}, {"port.py"})
        text = (ROOT / "fixtures" / "anymodel" / "port.py").read_text().splitlines()
        for op in ("rsqrt", "softmax", "silu"):
            for line in sources(mine, op):
                self.assertIn(op, text[int(line.rpartition(":")[2]) - 1])
        self.assertFalse([name for name, w in mine["weights"].items() if w.get("unknown")])
        with trace.Reader(out) as reader:
            self.assertNotIn("tracediff.entries", reader.metadata)
            self.assertEqual(json.loads(reader.metadata["tracediff.names"])["missed"], [])

    def test_code_in_a_checkpoint_runs_when_it_is_typed(self):
        folder, out = self.wren(), self.folder / "ref.safetensors"
        os.environ["HF_MODULES_CACHE"] = str(self.folder / "modules")
        line = ["--model", str(folder), "--tokens", "2,17,29", "--dtype", "float32", "--out", str(out)]
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(hf.main(line), 2)
        self.assertIn("hint: read its *.py files, then add --trust-remote-code", errors.getvalue())
        self.assertFalse(out.exists())
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(hf.main([*line, "--trust-remote-code"]), 0)
        self.assertRegex(said.getvalue(), r"\nnames found: 45; missed: none\n")
        self.assertTrue(any("modeling_wren.py:" in line for line in sources(program(out), "softmax")))

    def test_refinement_steps_are_passes(self):
        import diffusion

        model = diffusion.Denoiser().eval()
        with torch.no_grad():
            plain = diffusion.refine(model)
        out = self.folder / "run.safetensors"
        with torch.no_grad(), tracediff.recording(model, out):
            steps = diffusion.refine(model)
        made, one = tensors(out), program(out)
        for number, (a, b) in enumerate(zip(plain, steps, strict=True)):
            self.assert_same(a, b, f"step {number}")
        self.assertEqual([(p["tokens"], p["past"]) for p in one["passes"]], [(12, 0)] * diffusion.STEPS)
        for number in range(1, diffusion.STEPS):
            self.assert_same(made[f"pass{number}/input_ids"], steps[number - 1], "what a pass reads")
        calls = [[call[0] for call in p["calls"]] for p in one["passes"]]
        self.assertEqual(calls[1:], calls[:-1], "all steps share their templates")
        masks = [r for c in one["constants"] for r in c["from"] if r["kind"] == "mask" and r["of"] == "causal"]
        self.assertEqual(masks, [], "every position sees all")

    def test_what_no_reader_takes_is_not_written(self):
        import diffusion

        model = diffusion.Denoiser().eval()
        for limit, of in (
            ("MAX_LINES", "steps and names"),
            ("MAX_WRITTEN", "steps and names that are not alike"),
            ("MAX_OPERANDS", "operands and results"),
        ):
            with self.subTest(limit), mock.patch.object(program_file, limit, 16):
                with self.assertRaisesRegex(errors.CaptureFailed, f"more than 16 {of}$"):
                    with torch.no_grad(), tracediff.recording(model, self.folder / "run.safetensors"):
                        diffusion.refine(model)

    def test_the_limits_are_those_of_the_reader(self):
        text = (ROOT / "order" / "recorded" / "program.go").read_text()
        read = {name: int(n) << int(by) for name, n, by in re.findall(r"^\t(\w+) += (\d+) << (\d+)", text, re.M)}
        for written, name in (
            (program_file.MAX_NUMBERS, "MaxNumbers"),
            (program_file.MAX_LINES, "maxLines"),
            (program_file.MAX_ALL_LINES, "maxAllLines"),
            (program_file.MAX_WRITTEN, "maxWritten"),
            (program_file.MAX_OPERANDS, "maxAllOperands"),
        ):
            self.assertEqual(written, read[name], name)

    def test_an_encoder(self):
        import transformers

        torch.manual_seed(0)
        config = transformers.ModernBertConfig(
            vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            local_attention=4, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
            attn_implementation="eager", global_attn_every_n_layers=2,
        )  # fmt: skip
        model = transformers.ModernBertForMaskedLM(config).eval()
        ids = torch.tensor([[1, 9, 33, 63, 5, 17, 2]])
        with torch.no_grad():
            plain = model(ids).logits
        out = self.folder / "run.safetensors"
        with torch.no_grad(), tracediff.recording(model, out):
            recorded = model(ids).logits
        self.assert_same(recorded, plain, "logits")
        made = tensors(out)
        for layer in (0, 1):
            self.assertEqual(made[f"layers.{layer}.attn.probs_f32"].shape, (1, 4, 7, 7))
        self.assertGreater(float(made["layers.0.attn.probs_f32"][0, 0, 0, -1]), 0, "the first position sees the last")
        with trace.Reader(out) as reader:
            self.assertEqual(json.loads(reader.metadata["tracediff.names"])["missed"], [])


class OneKernel(TestCase):
    """Attention as one operation."""

    def test_what_goes_into_it_has_names_and_the_trace_says_where_it_ran(self):
        import transformers

        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, attn_implementation="sdpa",
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config).eval()
        out = self.folder / "run.safetensors"
        with torch.no_grad(), tracediff.recording(model, out):
            model(torch.tensor([[1, 9, 31, 5, 17]]))
        made = tensors(out)
        for layer in (0, 1):
            at = f"layers.{layer}.self_attn."
            self.assertEqual(made[at + "q_rope"].shape, (1, 4, 5, 4))
            for name in ("k_rope", "keys", "values"):
                self.assertEqual(made[at + name].shape, (1, 2, 5, 4), name)
            self.assertEqual(made[at + "context"].shape, (1, 5, 16))
            self.assertNotIn(at + "scores", made)
            flat = torch.as_tensor(made[at + "values"]).transpose(1, 2).reshape(1, 5, 8)
            self.assert_same(flat, torch.as_tensor(made[at + "v_proj"]), "values")
        with trace.Reader(out) as reader:
            self.assertEqual(json.loads(reader.metadata["tracediff.fused"]), ["layers.0.self_attn", "layers.1.self_attn"])


class Attends(nn.Module):
    """A model whose modules are given by the test."""

    def __init__(self, *modules):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(8, 4)
        self.layers = nn.ModuleList(modules)

    def forward(self, ids):
        x = self.table(ids)
        for layer in self.layers:
            x = layer(x)
        return x


class Fused(nn.Module):
    """Attention whose queries, keys and values are views of one product."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)

    def forward(self, x):
        q, k, v = self.qkv(x).view(1, -1, 3, 2, 2).permute(2, 0, 3, 1, 4)
        y = torch.softmax(q @ k.transpose(-1, -2) * 0.7, -1) @ v
        return x + self.out(y.transpose(1, 2).reshape(x.shape))


class Stacked(nn.Module):
    """Layers in a list of a name that no other model has."""

    def __init__(self):
        super().__init__()
        self.table, self.ls = nn.Embedding(8, 4), nn.ModuleList([Fused(), Fused()])

    def forward(self, ids):
        x = self.table(ids)
        for layer in self.ls:
            x = layer(x)
        return x


class Names(TestCase):
    """Names that are found, names that are missed, and tensors of a dtype that a trace does not have."""

    def record(self, *modules):
        """Return the trace and the names in its manifest."""
        out = self.folder / "run.safetensors"
        model = Attends(*modules)
        with torch.no_grad(), tracediff.recording(model, out):
            model(torch.tensor([[1, 2, 3]]))
        with trace.Reader(out) as reader:
            return tensors(out), json.loads(reader.metadata["tracediff.names"])

    def test_layers_in_a_list_of_another_name(self):
        torch.manual_seed(0)
        model, out = Stacked(), self.folder / "run.safetensors"
        with torch.no_grad(), tracediff.recording(model, out):
            model(torch.tensor([[1, 2, 3]]))
        with trace.Reader(out) as reader:
            self.assertEqual(json.loads(reader.metadata["tracediff.names"])["missed"], [])
        made = tensors(out)
        for layer in (0, 1):
            self.assertEqual(made[f"ls.{layer}.qkv"].shape, (1, 3, 12))
            self.assert_same(made[f"ls.{layer}.values"], made[f"ls.{layer}.qkv"].view(1, 3, 3, 2, 2)[:, :, 2].transpose(1, 2), "values")
            self.assertIn(f"ls.{layer}.out", made)
        one = program(out)
        self.assertEqual(one["layers"], "ls")
        calls = [call[:2] for call in one["passes"][0]["calls"] if call[1] >= 0]
        self.assertEqual([layer for _, layer in calls], [0, 1])
        self.assertEqual(calls[0][0], calls[1][0], "layers share a template")

    def test_which_list_is_the_layers(self):
        def block():
            return nn.Sequential(nn.Linear(4, 4), nn.Tanh())

        def lists(**held):
            """Return a model that holds lists of blocks, by name."""
            model = nn.Module()
            for name, modules in held.items():
                setattr(model, name, nn.ModuleList(modules))
            return model

        def experts():
            return lists(experts=[block() for _ in range(5)])

        tower = nn.Module()
        tower.body = nn.Sequential(*(experts() for _ in range(3)))
        apart = nn.Module()
        apart.front, apart.tower = lists(pre=[block(), block()]), tower
        cases = {
            "a list in a module, and experts in its layers": (apart, "tower.body"),
            "the longest": (lists(heads=[block(), block()], stages=[block() for _ in range(3)]), "stages"),
            "called as layers are": (lists(stages=[block() for _ in range(3)], blocks=[block(), block()]), "blocks"),
            "classes that come again": (lists(mixed=[block(), experts(), block()]), "mixed"),
            "one of each class": (lists(parts=[block(), experts()]), "layers"),
            "a layer spread over two lists": (lists(mix=[block(), block()], norms=[nn.Tanh(), nn.Tanh()]), "layers"),
            "no modules within": (lists(heads=[nn.Linear(4, 4), nn.Linear(4, 4)]), "layers"),
        }
        for why, (model, want) in cases.items():
            with self.subTest(why):
                paths = {module: name for name, module in model.named_modules() if name}
                self.assertEqual(layers.path(paths), want)

    def test_scores_that_are_not_found(self):
        class Strange(nn.Module):
            def forward(self, x):
                return torch.softmax((x @ x.transpose(1, 2)).cumsum(-1), -1) @ x

        made, names = self.record(Strange(), Strange())
        self.assertEqual(names["missed"], ["layers.0.scores", "layers.1.scores"])
        self.assertEqual(names["found"], len(made))

    def test_routers_are_no_attention(self):
        class Router(nn.Module):
            def __init__(self, first):
                super().__init__()
                self.gate, self.first = nn.Linear(4, 3), first

            def forward(self, x):
                scores = self.gate(x)
                scores = scores.topk(2, -1).values if self.first else scores
                return x * torch.softmax(scores, -1).sum(-1, keepdim=True)

        made, names = self.record(Router(False), Router(True))
        self.assertEqual(names["missed"], [])
        self.assertFalse([key for key in made if "scores" in key])

    def test_scores_behind_a_maximum(self):
        class Clamped(nn.Module):
            def forward(self, x):
                scores = x @ x.transpose(1, 2)
                return torch.softmax(torch.max(scores, torch.tensor(-1.0)), -1) @ x

        made, names = self.record(Clamped())
        self.assertEqual(names["missed"], [])
        self.assertLess(float(made["layers.0.scores"].min()), -1.0)
        self.assertEqual(float(made["layers.0.scores_masked"].min()), -1.0)

    def test_complex_tensors_are_their_parts(self):
        class Turn(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("speed", torch.tensor([1.0, 0.1]), persistent=False)

            def forward(self, x):
                return torch.polar(torch.ones(3, 2), torch.arange(3)[:, None] * self.speed)

        class Turned(nn.Module):
            def __init__(self):
                super().__init__()
                self.turn = Turn()

            def forward(self, x):
                z = torch.view_as_complex(x.view(1, 3, 2, 2)) * self.turn(x)
                return torch.view_as_real(z).reshape(x.shape)

        made, _ = self.record(Turned())
        want = torch.view_as_real(Turn()(None))
        self.assert_same(made["layers.0.turn"], want, "cosines and sines")

    def test_a_constant_of_one_element_with_a_stride(self):
        class Picks(nn.Module):
            def forward(self, x):
                at = torch.arange(6).view(3, 2)[1:2, 1]  # one element, whose stride is 2
                return x + x[:, at - 3 + torch.zeros(1, dtype=torch.int64)]

        made, _ = self.record(Picks())
        self.assertIn("layers.0.out", made)


class Caches(TestCase):
    """Tensors that a pass adds to a cache with room for later tokens, and the mask of padding that a caller gives."""

    def setUp(self):
        import transformers

        super().setUp()
        self.transformers = transformers
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            ROOT / "fixtures" / "gemma3-tiny", dtype=torch.float32, attn_implementation="eager"
        ).eval()

    def record(self, **given):
        out = os.path.join(self.folder, "cache.safetensors")
        with torch.no_grad(), tracediff.recording(self.model, out):
            self.model(torch.tensor([IDS]), **given)
            if "past_key_values" in given:
                self.model(torch.tensor([[5]]), **given)
        return load_file(out)

    def test_keys_of_the_pass_behind_a_static_cache(self):
        room = len(IDS) + 7
        cache = self.transformers.StaticCache(config=self.model.config, max_cache_len=room)
        seen = self.record(past_key_values=cache, use_cache=True)
        for name, tokens, past in (("", len(IDS), 0), ("pass1/", 1, len(IDS))):
            for layer in range(3):
                at = f"{name}layers.{layer}.self_attn"
                made, kept = seen[f"{at}.k_rope"], seen[f"{at}.keys"]
                self.assertEqual(made.shape, (1, 2, tokens, 6), at)
                if layer == 1:
                    self.assertEqual(kept.shape[2], room)
                    self.assertTrue(torch.equal(kept[:, :, past : past + tokens], made), at)
                else:
                    self.assertTrue(torch.equal(kept[:, :, -tokens:], made), at)

    def test_padding_is_written(self):
        mask = torch.ones(1, len(IDS), dtype=torch.int64)
        self.assertNotIn("attention_mask", self.record(attention_mask=mask))
        mask[0, :2] = 0
        self.assertTrue(torch.equal(self.record(attention_mask=mask)["attention_mask"], mask))


if __name__ == "__main__":
    unittest.main()
