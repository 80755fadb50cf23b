"""Recorded programs: every name of the hand-written orders, the numbers of the trace, and nothing changed or kept."""

import dis
import functools
import gc
import hashlib
import json
import linecache
import pathlib
import subprocess
import sys
import tempfile
import unittest
import weakref

import torch
from safetensors.torch import load_file, save_file
from torch import nn

import evaluate
from common import ROOT, TestCase, loaded, order_of, tensors
import tracediff
from tracediff import capture, hf, places, trace, tracing
from tracediff import session as sessions
from tracediff.program import Recording

NAMES = (
    "gemma-tiny", "gemma2-tiny", "gemma2-variant", "gemma3-tiny", "gemma3-multimodal", "gemma3n-tiny", "gemma3n-odd",
    "gemma3n-variant", "llama-tiny", "qwen2-tiny", "qwen3-tiny",
)  # fmt: skip
IDS = [2, 17, 29, 41, 7, 88, 5, 64, 90]
FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def recorded(name, dtype="bfloat16"):
    """Return a session of a checkpoint, nine tokens and two decode steps, and the trace of the same run."""
    checkpoint = ROOT / "fixtures" / name
    model = loaded(checkpoint, dtype)
    session = sessions.Session(model.outer, checkpoint)
    out = pathlib.Path(FOLDER.name) / f"{name}.{dtype}.safetensors"
    with session.running():
        capture.run(model, order_of(checkpoint), capture.Job([IDS], 2), out)
    session.save(sessions.beside(out), {})
    return session, out


class Fixtures(TestCase):
    """The checkpoints that have a hand-written order."""

    def test_names_sequence_and_shapes(self):
        for name in NAMES:
            order = order_of(ROOT / "fixtures" / name)
            session, _ = recorded(name)
            self.assertEqual([(p.tokens, p.past) for p in session.passes], [(9, 0), (1, 9), (1, 10)])
            for number, one in enumerate(session.passes):
                with self.subTest(name, number=number):
                    shapes = {n.name: tuple(n.operand.shape) for n in one.names}
                    self.assertEqual(len(shapes), len(one.names), "a name stands once")
                    wanted = [e for e in order.entries if e.source.kind != "derived"]
                    known = {e.name for e in wanted}
                    self.assertEqual([n.name for n in one.names if n.name in known], [e.name for e in wanted])
                    for e in wanted:
                        self.assertEqual(shapes[e.name], e.size(one.tokens, one.past, order.window), e.name)
                    levels = {n.name: n.level for n in one.names}
                    self.assertEqual({e.name: levels[e.name] for e in wanted}, {e.name: e.level for e in wanted})

    def test_layers_are_those_of_the_order(self):
        for name in ("gemma3n-odd", "qwen3-tiny"):
            session, _ = recorded(name)
            layers = {n.name: n.layer for n in session.passes[0].names}
            for e in order_of(ROOT / "fixtures" / name).entries:
                if e.source.kind != "derived":
                    self.assertEqual(layers[e.name], e.layer, e.name)

    def score(self, name, dtype):
        _, path = recorded(name, dtype)
        trace = tensors(path)
        weights = load_file(ROOT / "fixtures" / name / "model.safetensors")
        ids = [trace[key].reshape(-1).tolist() for key in ("input_ids", "pass1/input_ids", "pass2/input_ids")]
        prefix = ["", "pass1/", "pass2/"]
        return evaluate.score(
            sessions.beside(path), weights, ids, lambda number, key: trace.get(prefix[number] + key)
        ), trace

    def test_the_file_gives_the_numbers_of_the_trace(self):
        for name, dtype, most in (
            *((name, "bfloat16", 0.012) for name in NAMES),
            ("qwen3-tiny", "float32", 0.35),
            ("gemma2-tiny", "float32", 0.35),
        ):
            with self.subTest(name, dtype=dtype):
                score, trace = self.score(name, dtype)
                listed = sum(e.source.kind != "derived" for e in order_of(ROOT / "fixtures" / name).entries)
                self.assertGreaterEqual(score.entries, 3 * listed)
                self.assertGreaterEqual(len(trace), score.entries)
                self.assertEqual(score.far, 0, score.worst)
                self.assertLess(score.unequal / score.elements, most)

    def test_a_wrong_constant_shows(self):
        _, path = recorded("qwen3-tiny")
        text = sessions.beside(path).read_text()
        self.assertIn("1e-06", text)
        program = json.loads(text.replace("1e-06", "0.01"))
        trace = tensors(path)
        weights = load_file(ROOT / "fixtures" / "qwen3-tiny" / "model.safetensors")
        ids = [trace[key].reshape(-1).tolist() for key in ("input_ids", "pass1/input_ids", "pass2/input_ids")]
        named = evaluate.Evaluator(program, weights, ids).run(
            lambda n, key: trace.get((f"pass{n}/" if n else "") + key)
        )
        wrong = [name for name, (ours, theirs) in named.items() if not torch.equal(ours, theirs)]
        norms = [name for name in wrong if "norm" in name]
        self.assertIn("pass0/layers.1.input_layernorm", norms)

    def test_each_step_has_its_line_of_source(self):
        program = json.loads(sessions.beside(recorded("qwen3-tiny")[1]).read_text())
        lines = {}
        for _, line in evaluate.expand(program):
            if "op" in line:
                lines.setdefault(line["op"], set()).add(program["lines"][line["at"]])
        self.assertEqual(
            {line.rpartition(":")[0] for line in lines["rsqrt"]}, {"transformers/models/qwen3/modeling_qwen3.py"}
        )
        import transformers

        source = pathlib.Path(transformers.__file__).parents[1]
        for line in lines["rsqrt"] | lines["softmax"]:
            path, _, number = line.rpartition(":")
            self.assertRegex((source / path).read_text().splitlines()[int(number) - 1], "rsqrt|softmax")

    def test_constants_say_what_they_are_made_from(self):
        program = json.loads(sessions.beside(recorded("gemma2-tiny")[1]).read_text())
        for one in program["constants"]:
            self.assertTrue(one["from"], one)
        kinds = {r["of"] for one in program["constants"] for r in one["from"] if r["kind"] == "mask"}
        self.assertIn("sliding", kinds)

    def test_buffers_are_leaves_with_a_name(self):
        program = json.loads(sessions.beside(recorded("llama-tiny")[1]).read_text())
        self.assertTrue(program["weights"]["model.rotary_emb.inv_freq"]["buffer"])
        ops = [line["op"] for _, line in evaluate.expand(program) if "op" in line]
        self.assertEqual((ops.count("cos"), ops.count("sin")), (3, 3), "rotary tables are programs of positions")


class Unchanged(TestCase):
    """Recording changes nothing, and keeps nothing."""

    def test_logits_are_equal_to_the_bit(self):
        for name in NAMES:
            checkpoint = ROOT / "fixtures" / name
            plain = self.capture(checkpoint, "bfloat16", capture.Job([IDS], 2))
            with_program = tensors(recorded(name)[1])
            self.assertEqual(list(plain), list(with_program))
            for key, tensor in plain.items():
                self.assert_same(with_program[key], tensor, f"{name} {key}")

    def test_no_activation_stays(self):
        model = loaded(ROOT / "fixtures" / "qwen3-tiny", "bfloat16").outer
        session = sessions.Session(model)
        kept = []
        hooks = [
            m.register_forward_hook(lambda _m, _a, out: kept.append(weakref.ref(first(out)))) for m in model.modules()
        ]
        with session.running(), torch.no_grad():
            model(torch.tensor([IDS]), use_cache=False)
        for hook in hooks:
            hook.remove()
        gc.collect()
        self.assertGreater(len(kept), 40)
        self.assertEqual([ref() for ref in kept if ref() is not None], [])
        self.assertTrue(session.text({}))


def first(out):
    return out if isinstance(out, torch.Tensor) else next(iter(out.values() if hasattr(out, "values") else out))


class Expressions(TestCase):
    """The text of the expression that called torch."""

    def of(self, source):
        """Return the expressions of a function's calls; without a source the function's file does not exist."""
        path = self.folder / "net.py"
        path.write_text(source)
        linecache.checkcache(str(path))
        code = compile(source, path, "exec")
        calls = [i.offset for i in dis.get_instructions(code) if i.opname in ("CALL", "BINARY_OP")]
        return [places.expression(code, at) for at in calls]

    def test_text(self):
        long = "f(" + "1 + " * 40 + "x)"
        for source, want in (
            ("a = b * c", "b * c"),
            ("σ = 'ä'; a = σ * f(b)  # columns count bytes", "σ * f(b)"),
            ("a = f(\n    b,\n\tc=1,\n)", "f( b, c=1, )"),
            (f"a = {long}", long[:79].rstrip() + "…"),
            ("a = f('\x07 \U0001f600')", "f('? ?')"),
        ):
            with self.subTest(source):
                self.assertEqual(self.of(source)[-1], want)

    def test_what_is_not_known(self):
        code = compile("a = b * c", str(self.folder / "gone.py"), "exec")
        self.assertEqual({places.expression(code, i.offset) for i in dis.get_instructions(code)}, {""})
        many = "a = f(" + "\n" * 100 + "b)"
        self.assertEqual(self.of(many)[-1], "")
        bare = self.folder / "bare.py"
        lines = "import sys; sys.path[:0] = sys.argv[1:]", "from tracediff import places", "print(places.place())"
        bare.write_text("\n".join(lines))
        for flags, want in ((), "('bare.py:3', 'places.place()')"), (("-X", "no_debug_ranges"), "('bare.py:3', '')"):
            done = subprocess.run(
                [sys.executable, *flags, bare, ROOT / "hooks" / "python"], capture_output=True, text=True, check=True
            )
            self.assertEqual(done.stdout.strip(), want)


class InPlace(nn.Module):
    """What a program has to resolve to values."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(4, 6))
        self.register_buffer("scale", torch.tensor([0.5, 2.0, 1.0, -1.0, 3.0, 0.1]), persistent=False)
        self.cache = None

    def forward(self, ids):
        x = nn.functional.embedding(ids, self.weight)  # [1,T,6]
        x[..., :3] *= self.scale[:3]
        if self.cache is None:
            self.cache = torch.zeros(1, 8, 6)
            self.used = 0
        self.cache[:, self.used : self.used + x.shape[1]] = x
        self.used += x.shape[1]
        keys = self.cache[:, : self.used]
        out = torch.empty(1, 6, x.shape[1])
        torch.matmul(keys.transpose(1, 2), keys[:, -x.shape[1] :], out=out) if self.used == x.shape[1] else None
        y = keys.sum(1, keepdim=True) + x
        y.index_put_((torch.tensor([0]), torch.tensor([0])), keys[0, 0][None])
        y.scatter_(2, torch.tensor([[[1]]]), x[:, :1, :1] * 3)
        z = torch.view_as_real(
            torch.view_as_complex(y.reshape(1, -1, 3, 2)) * torch.polar(torch.ones(3), self.scale[:3])
        )
        top, at = y.topk(2, dim=-1)
        return z.reshape(y.shape) + y.gather(-1, at).sum() + top.mean(), at


class Resolved(TestCase):
    """Writing in place, caches, scattered writes, complex numbers and unknown operations."""

    def passes(self, model, passes, checkpoint=""):
        """Record and return the session and the program."""
        session = sessions.Session(model, checkpoint)
        outs = []
        with session.running(), torch.no_grad():
            for ids in passes:
                outs.append(model(torch.tensor([ids])))
        return json.loads(session.text({})), outs

    def test_values_are_those_of_torch(self):
        program, outs = self.passes(InPlace(), [[1, 2, 3], [0]])
        weight = InPlace().weight.data
        evaluator = evaluate.Evaluator(program, {"weight": weight}, [[1, 2, 3], [0]])
        named = evaluator.run()
        for number, (out, _) in enumerate(outs):
            ours, _ = named[f"pass{number}/output"]
            self.assertEqual(ours.shape, out.shape)
            self.assertLess(float((ours - out).abs().max()), 1e-5)
        ops = {line["op"] for _, line in evaluate.expand(program) if "op" in line}
        self.assertLessEqual({"write", "index_put", "scatter", "bits", "topk"}, ops)

    def test_an_unknown_operation_is_recorded_by_its_name(self):
        class Odd(nn.Linear):
            def forward(self, ids):
                return torch.special.i0e(self.weight)[ids]

        program, _ = self.passes(Odd(3, 3), [[0, 1]])
        lines = [line for _, line in evaluate.expand(program) if line.get("op") == "special_i0e"]
        self.assertEqual([line["out"] for line in lines], [[["float32", [3, 3]]]])

    def test_what_python_looks_at_is_a_guard(self):
        class Looks(nn.Linear):
            def forward(self, ids):
                x = self.weight[ids]
                return x * 2 if x.sum().item() > 0 and len(x[0, 0].tolist()) == 3 else x

        program, _ = self.passes(Looks(3, 3), [[0, 1]])
        guards = [line for _, line in evaluate.expand(program) if line.get("op") == "guard"]
        self.assertEqual(len(guards), 1 + (guards[0]["attr"]["value"] > 0))

    def test_ids_are_refused_where_nothing_makes_them_again(self):
        class Picks(nn.Linear):
            def forward(self, ids):
                return self.weight[ids] * (ids > 1).float()[..., None]

        program, _ = self.passes(Picks(3, 3), [[0, 1, 2, 1]])
        unknown = [one for one in program["constants"] if not one["from"]]
        self.assertEqual([one["depends"] for one in unknown], [["input_ids"]])

    def test_parameters_are_found_in_the_checkpoint_by_content(self):
        class Joined(nn.Module):
            def __init__(self):
                super().__init__()
                self.qkv = nn.Parameter(torch.randn(6, 4))
                self.turned = nn.Parameter(torch.randn(4, 5))
                self.table = nn.Parameter(torch.randn(3, 4))
                self.gone = nn.Parameter(torch.randn(7))

            def forward(self, ids):
                return self.table[ids] @ self.qkv.T @ self.qkv @ self.turned + self.gone[:5]

        model = Joined()
        file = {
            "q": model.qkv.data[:2].clone(), "k": model.qkv.data[2:3].clone(), "v": model.qkv.data[3:].clone(),
            "other": model.turned.data.T.clone(), "model.table": model.table.data.clone(),
        }  # fmt: skip
        save_file({k: v.contiguous() for k, v in file.items()}, self.folder / "model.safetensors")
        program, (out,) = self.passes(model, [[0, 2, 1]], self.folder)
        weights = program["weights"]
        self.assertEqual(weights["qkv"]["rows"], [["q", [2, 4]], ["k", [1, 4]], ["v", [3, 4]]])
        self.assertEqual((weights["turned"]["file"], weights["turned"]["transposed"]), ("other", True))
        self.assertEqual(weights["table"]["file"], "model.table")
        self.assertTrue(weights["gone"]["unknown"])
        named = evaluate.Evaluator(program, file | {"gone": model.gone.data}, [[0, 2, 1]]).run()
        self.assertLess(float((named["pass0/output"][0] - out).abs().max()), 1e-4)

    def test_a_model_that_was_not_called(self):
        from tracediff.errors import CaptureFailed

        with self.assertRaisesRegex(CaptureFailed, "not called"):
            sessions.Session(InPlace()).text({})


class AnyModel(TestCase):
    """Traces with their programs, without an order."""

    def test_the_trace_has_every_name_and_the_same_numbers(self):
        for name in ("gemma3n-tiny", "qwen3-tiny"):
            checkpoint = ROOT / "fixtures" / name
            out = self.folder / f"{name}.safetensors"
            tracing.run(loaded(checkpoint, "bfloat16").outer, str(checkpoint), [IDS], 2, out, "")
            made, known = tensors(out), tensors(recorded(name)[1])
            program = json.loads(sessions.beside(out).read_text())
            names = [(n, line["name"]) for n, line in evaluate.expand(program) if "name" in line]
            self.assertEqual({(f"pass{n}/" if n else "") + key for n, key in names}, set(made))
            derived = {e.name for e in order_of(checkpoint).entries if e.source.kind == "derived"}
            for key, tensor in known.items():
                if key.rpartition("/")[2] not in derived:
                    self.assert_same(made[key], tensor, key)

    def test_runs_of_other_lengths_change_nothing_of_the_wanted_one(self):
        checkpoint = ROOT / "fixtures" / "llama-tiny"
        outer, made, programs = loaded(checkpoint, "bfloat16").outer, [], []
        right = outer.forward

        def refuses(*args, input_ids, **kwargs):  # a length at which the model fails is left out
            if input_ids.shape[1] == 5:
                raise ValueError("five")
            return right(*args, input_ids=input_ids, **kwargs)

        for most in (0, 24):
            out = self.folder / f"run-{most}.safetensors"
            outer.forward = refuses
            _, told = tracing.run(outer, str(checkpoint), [IDS], 2, out, "", most)
            made.append(tensors(out))
            programs.append(json.loads(sessions.beside(out).read_text()))
        self.assertEqual(made[0].keys(), made[1].keys())
        for key, tensor in made[0].items():
            self.assert_same(made[1][key], tensor, key)
        lines = [[line for _, line in evaluate.expand(program)] for program in programs]
        for line in (*lines[0], *lines[1]):
            line.pop("at", None)
        self.assertEqual(*lines)
        self.assertNotIn("runs", programs[0])
        runs = [[one["tokens"] for one in run] for run in programs[1]["runs"]]
        self.assertEqual(runs, [[1, 1, 1], [2, 1, 1], [2 * len(IDS) + 1, 1, 1], [24, 1, 1, 1]])
        self.assertTrue(told.endswith(f"lengths: 1, 2, {2 * len(IDS) + 1}, 24 tokens, too"), told)

    def test_the_manifest_has_the_digest_of_the_program(self):
        with torch.no_grad(), tracediff.recording(loaded(ROOT / "fixtures" / "llama-tiny", "float32").outer,
                                                  self.folder / "run.safetensors"):  # fmt: skip
            loaded(ROOT / "fixtures" / "llama-tiny", "float32").outer(torch.tensor([IDS]))
        with trace.Reader(self.folder / "run.safetensors") as reader:
            manifest = reader.metadata
            self.assertNotIn("tracediff.entries", manifest)  # a port's own names are no promise
            self.assertIn("layers.0.mlp.act_fn", reader.tensors)
        data = (self.folder / "run.program.json").read_bytes()
        self.assertEqual(manifest["tracediff.program"], "sha256:" + hashlib.sha256(data).hexdigest())
        self.assertEqual(
            (reader.status, manifest["tracediff.passes"], manifest["tracediff.side"]), ("complete", "1", "local")
        )

    def test_a_model_of_ones_own(self):
        model = InPlace()
        with torch.no_grad(), tracediff.recording(model, self.folder / "own.safetensors"):
            outs = [model(torch.tensor([ids]))[0] for ids in ([1, 2, 3], [0])]
        made = tensors(self.folder / "own.safetensors")
        for key, out in zip(("output", "pass1/output"), outs, strict=True):
            self.assert_same(made[key], out, key)
        program = json.loads((self.folder / "own.program.json").read_text())
        self.assertTrue(any(line.startswith("test_program.py:") for line in program["lines"]), program["lines"])
        self.assertEqual(len(program["expressions"]), len(program["lines"]))
        text = pathlib.Path(__file__).read_text().splitlines()
        for expression in ("x[..., :3] *= self.scale[:3]", "keys.sum(1, keepdim=True)", "keys.sum(1, keepdim=True) + x"):
            line = program["lines"][program["expressions"].index(expression)]
            self.assertIn(expression, text[int(line.rpartition(":")[2]) - 1])

    def test_a_run_that_fails(self):
        with self.assertRaises(IndexError), tracediff.recording(InPlace(), self.folder / "own.safetensors"):
            InPlace().weight[7]
        self.assertFalse((self.folder / "own.safetensors").exists())
        with trace.Reader(self.folder / "own.safetensors.part") as reader:
            self.assertEqual(reader.status, "failed")

    def test_nothing_is_held_when_it_is_over(self):
        model = loaded(ROOT / "fixtures" / "qwen3-tiny", "bfloat16").outer
        kept = []
        hooks = [
            m.register_forward_hook(lambda _m, _a, out: kept.append(weakref.ref(first(out)))) for m in model.modules()
        ]
        with torch.no_grad(), tracediff.recording(model, self.folder / "run.safetensors"):
            model(torch.tensor([IDS]), use_cache=False)
            gc.collect()
            self.assertEqual([ref() for ref in kept if ref() is not None], [])
        for hook in hooks:
            hook.remove()

    def test_the_command_without_an_order(self):
        out = self.folder / "ref.safetensors"
        arguments = ["--model", str(ROOT / "fixtures" / "llama-tiny"), "--tokens", "2,5,7;3", "--max-new-tokens", "1"]
        self.assertEqual(hf.main([*arguments, "--dtype", "float32", "--out", str(out)]), 0)
        with trace.Reader(out) as reader:
            self.assertEqual(reader.metadata["tracediff.passes"], "3")
        self.assertTrue(sessions.beside(out).exists())
        self.assertEqual(hf.main([*arguments, "--dtype", "float32", "--out", str(out), "--layers", "0"]), 2)


class Size(TestCase):
    """Layers of one kind share a template, and decode steps do."""

    def test_32_layers(self):
        import transformers

        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=32, num_attention_heads=4,
            num_key_value_heads=2, attn_implementation="eager",
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config).eval()
        session = sessions.Session(model)
        with session.running(), torch.no_grad():
            cache = model(torch.tensor([IDS[:9]]).remainder(64), use_cache=True).past_key_values
            model(torch.tensor([[3]]), past_key_values=cache)
        text = session.text({})
        program = json.loads(text)
        self.assertLess(len(text), 200_000)
        self.assertLessEqual(len(program["templates"]), 6)
        self.assertEqual([len(one["calls"]) for one in program["passes"]], [34, 34])

    def test_decode_steps_share_templates(self):
        program = json.loads(sessions.beside(recorded("qwen3-tiny")[1]).read_text())
        used = [[call[0] for call in one["calls"]] for one in program["passes"]]
        self.assertEqual(used[1], used[2])


class Cost(unittest.TestCase):
    """What is not the model's is not in its program."""

    def test_a_capture_leaves_no_steps(self):
        model = loaded(ROOT / "fixtures" / "qwen3-tiny", "bfloat16").outer
        alone = Recording(model)
        with alone.running(), torch.inference_mode():
            model(torch.tensor([IDS]), use_cache=True)
        self.assertEqual(len(alone.steps), len(recorded("qwen3-tiny")[0].passes[0].steps))


if __name__ == "__main__":
    unittest.main()
