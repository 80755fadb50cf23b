"""Captures of the small checkpoints: the trace has the tensors of the model, and recording changes no result."""

import dataclasses
import errno
import json
import os
import unittest
from unittest import mock

import torch

from common import ODD, PROMPT, TINY, TestCase, loaded, order_of, tensors
from tracediff import capture, host, order, trace
from tracediff.errors import BadInput, CaptureFailed

DTYPES = ("float32", "bfloat16")


def logits_alone(checkpoint, dtype, prompt, decode):
    """Return the logits of each pass of the bare model."""
    outer, ids, cache, out = loaded(checkpoint, dtype).outer, [prompt], None, []
    for _ in range(1 + decode):
        with torch.inference_mode():
            result = outer(input_ids=torch.tensor(ids), past_key_values=cache, use_cache=True)
        cache = result.past_key_values
        out.append(result.logits)
        ids = [[int(result.logits[0, -1].argmax())]]
    return out


class Observing(TestCase):
    """Hooks and the tensors that they receive."""

    def test_changes_nothing(self):
        for checkpoint in (TINY, ODD):
            for dtype in DTYPES:
                before = logits_alone(checkpoint, dtype, PROMPT, 3)
                seen = self.capture(checkpoint, dtype, capture.Job([PROMPT], decode=3))
                after = logits_alone(checkpoint, dtype, PROMPT, 3)
                for n, (a, b) in enumerate(zip(before, after, strict=True)):
                    name = trace.key("logits", n)
                    self.assert_same(seen[name], a, f"{checkpoint.name} {dtype} {name}")
                    self.assert_same(b, a, "after the hooks were taken off")

    def test_everything_is_there_in_order(self):
        seen = self.capture(TINY, "bfloat16", capture.Job([PROMPT], decode=2))
        names = [e.name for e in order_of(TINY).entries]
        self.assertEqual(list(seen), [trace.key(name, n) for n in range(3) for name in names])
        for n, tokens, past in ((0, 8, 0), (1, 1, 8), (2, 1, 9)):
            for e in order_of(TINY).entries:
                tensor = seen[trace.key(e.name, n)]
                self.assertEqual(tuple(tensor.shape), e.size(tokens, past, 4), e.name)
                self.assertEqual(tensor.dtype, getattr(torch, e.dtype or "bfloat16"), e.name)

    def test_replay_of_the_decoded_ids_is_the_same_run(self):
        decoded = self.capture(TINY, "float32", capture.Job([PROMPT], decode=2))
        ids = [decoded[trace.key("input_ids", n)][0].tolist() for n in range(3)]
        self.assertEqual(ids[0], PROMPT)
        replayed = self.capture(TINY, "float32", capture.Job(ids))
        for name, tensor in decoded.items():
            self.assert_same(replayed[name], tensor, name)

    def test_several_tokens_after_a_prefill(self):
        seen = self.capture(TINY, "float32", capture.Job([PROMPT[:5], PROMPT[5:]]))
        whole = self.capture(TINY, "float32", capture.Job([PROMPT]))
        torch.testing.assert_close(seen["pass1/logits"], whole["logits"][:, 5:], rtol=1e-4, atol=1e-4)
        self.assertEqual(seen["pass1/position_ids"].tolist(), [[5, 6, 7]])

    def test_a_narrow_capture_has_the_same_tensors(self):
        whole = self.capture(TINY, "bfloat16", capture.Job([PROMPT], decode=1))
        for scope in (order.Scope(1), order.Scope(2), order.Scope(3, "2-3"), order.Scope(2, "6")):
            narrow = self.capture(TINY, "bfloat16", capture.Job([PROMPT], decode=1, scope=scope))
            names = [e.name for e in scope.select(order_of(TINY).entries)]
            self.assertEqual(list(narrow), [trace.key(name, n) for n in range(2) for name in names])
            for name, tensor in narrow.items():
                self.assert_same(tensor, whole[name], f"{scope} {name}")


class Arithmetic(TestCase):
    """Captured tensors fit together bit for bit, so no tensor was changed after it was computed."""

    def both(self):
        """Yield the tensors of a prefill and of a decode step, of both checkpoints in both dtypes."""
        for checkpoint in (TINY, ODD):
            for dtype in DTYPES:
                seen = self.capture(checkpoint, dtype, capture.Job([PROMPT], decode=1))
                for prefix in ("", "pass1/"):
                    self.where = f"{checkpoint.name} {dtype} {prefix}"
                    here = {k.removeprefix(prefix): v for k, v in seen.items() if ("/" in k) == bool(prefix)}
                    yield here, order_of(checkpoint).config

    def test_derived_tensors_lead_to_what_the_model_computed_next(self):
        for seen, config in self.both():
            extra = config["gemma3n"]
            for i in range(config["num_hidden_layers"]):
                at = f"layers.{i}."
                gated = (seen[at + "attn_gated"] + seen[at + "laurel"]) / 2**0.5
                self.assert_same(gated, seen[at + "attn_laurel"], at + "attn_laurel")
                corrected = seen[at + "altup.correct.innovation"] * (
                    (seen[at + "altup.correction_coefs"] + 1.0).permute(2, 0, 1).unsqueeze(-1)
                )
                corrected = corrected + seen[at + "altup.predict"]
                self.assert_same(corrected, seen[at + "altup.correct"], at + "altup.correct")
                if extra["activation_sparsity_pattern"][i] > 0:
                    sparse = torch.relu(seen[at + "mlp.gate_proj"] - seen[at + "mlp.sparsity.cutoff"])
                    self.assert_same(sparse, seen[at + "mlp.gate_sparse"], at + "mlp.gate_sparse")

    def test_derived_magnitudes_make_the_streams(self):
        for seen, config in self.both():
            x, target = seen["inputs_embeds"], seen["altup.init.target_magnitude"]
            streams, final = [x], [seen[f"layers.{config['num_hidden_layers'] - 1}.out"][0]]
            for k in range(1, config["gemma3n"]["altup_num_inputs"]):
                streams.append(seen[f"altup_projections.{k - 1}"] * target / seen[f"altup.init.magnitude.{k}"])
                final.append(seen[f"altup.final.stream.{k}"])
            self.assert_same(torch.stack(streams), seen["altup.init"], "altup.init")
            self.assert_same(torch.stack(final).mean(0), seen["altup.final.mean"], "altup.final.mean")

    def test_lookups_are_what_the_embedding_scales(self):
        for seen, config in self.both():
            widths = {
                "embed_tokens": config["hidden_size"],
                "embed_tokens_per_layer": config["gemma3n"]["hidden_size_per_layer_input"],
            }
            for name, width in widths.items():
                rows = seen[name + ".lookup"]
                self.assert_same(rows * torch.tensor(width**0.5).to(rows.dtype), seen[name], name)

    def test_tensors_are_those_before_the_model_changes_them_in_place(self):
        for seen, config in self.both():
            scale = torch.tensor(config["hidden_size"] ** -0.5).to(seen["embed_tokens"].dtype)
            scaled = seen["per_layer_model_projection"] * scale
            self.assert_same(scaled, seen["per_layer_model_projection.scaled"], "scaled")
            for i in range(config["num_hidden_layers"]):
                at = f"layers.{i}."
                out = seen[at + "altup.correct"].clone()
                out[1:] += seen[at + "post_per_layer_input_norm"]
                self.assert_same(out, seen[at + "out"], at + "out")

    def test_attention_is_that_of_the_layer(self):
        for seen, config in self.both():
            shared = config["num_hidden_layers"] - config["gemma3n"]["num_kv_shared_layers"]
            for i in range(config["num_hidden_layers"]):
                at = f"layers.{i}.self_attn."
                short = config["layer_types"][i].removesuffix("_attention")
                self.assert_same(seen[at + "scores"] + seen[f"mask.{short}"], seen[at + "scores_masked"], at)
                tokens = seen["input_ids"].shape[1]
                if i < shared:
                    self.assert_same(seen[at + "k_rope"], seen[at + "keys"][..., -tokens:, :], at + "k_rope")
                else:
                    source = max(j for j in range(shared) if config["layer_types"][j] == config["layer_types"][i])
                    self.assert_same(seen[at + "keys"], seen[f"layers.{source}.self_attn.keys"], at + "keys")


class Manifest(TestCase):
    """The manifest of a trace."""

    def test_fields(self):
        out = self.folder / "t.safetensors"
        job = capture.Job([PROMPT], decode=1, prompt="a text", scope=order.Scope(3, "0-1"))
        capture.run(loaded(TINY, "bfloat16"), order_of(TINY), job, out)
        with trace.Reader(out) as reader:
            said = {k.removeprefix("tracediff."): v for k, v in reader.metadata.items()}
        derived = [e.name for e in job.scope.select(order_of(TINY).entries) if e.source.kind == "derived"]
        self.assertEqual(json.loads(said["derived"]), derived)
        self.assertIn("layers.0.attn_gated", derived)
        self.assertEqual(json.loads(said["entries"])[:2], ["input_ids", "position_ids"])
        self.assertEqual(json.loads(said["scope"]), {"level": 3, "layers": "0-1"})
        self.assertEqual(json.loads(said["config"]), order_of(TINY).config)
        producer = json.loads(said["producer"])
        self.assertEqual(producer["name"], "transformers")
        self.assertEqual(producer["version"], loaded(TINY, "bfloat16").versions["transformers"])
        details = {"torch", "python", "cpu", "cpu_flags", "cpu_capability", "threads", "device"}
        self.assertEqual(producer["details"].keys() - {"kernels"}, details)
        want = {"prompt": "a text", "dtype": "bfloat16", "passes": "2", "side": "reference"}
        want |= {"sequence": "execution", "device": "cpu"}
        self.assertEqual({k: said[k] for k in want}, want)
        self.assertRegex(said["weights"], "^sha256:[0-9a-f]{64}$")

    def test_kernels_that_were_asked_for(self):
        for env, want in (
            ({}, None),
            ({"MKL_CBWR": "", "ATEN_CPU_CAPABILITY": "avx2"}, "ATEN_CPU_CAPABILITY=avx2"),
            ({"MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}, "ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=AVX2"),
        ):
            with self.subTest(env), mock.patch.dict(os.environ):
                for name in host.CHOICES:
                    os.environ.pop(name, None)
                os.environ.update(env)
                self.assertEqual(host.details({"torch": "2"}, "cpu").get("kernels"), want)

    def test_two_runs_are_the_same_bytes(self):
        files = [self.folder / name for name in ("a.safetensors", "b.safetensors")]
        for file in files:
            capture.run(loaded(TINY, "float32"), order_of(TINY), capture.Job([PROMPT]), file)
        self.assertEqual(files[0].read_bytes(), files[1].read_bytes())


class Failing(TestCase):
    """Runs that have to fail."""

    def test_ids(self):
        for passes in ([], [[]], [[2], []], [[1024]], [[-1]], [[2] * 129]):
            with self.subTest(passes), self.assertRaises(BadInput):
                capture.run(loaded(TINY, "float32"), order_of(TINY), capture.Job(passes), self.folder / "t.safetensors")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_order_that_is_not_the_models(self):
        entries = list(order_of(TINY).entries)
        at = next(i for i, e in enumerate(entries) if e.name == "layers.2.mlp.up_proj")
        source = dataclasses.replace(entries[at].source, call=1)
        entries[at] = dataclasses.replace(entries[at], source=source)
        wrong = dataclasses.replace(order_of(TINY), entries=tuple(entries))
        with self.assertRaisesRegex(CaptureFailed, r"layers.2.mlp.up_proj: out:layers.2.mlp.up_proj#1 never fired$"):
            capture.run(loaded(TINY, "float32"), wrong, capture.Job([PROMPT]), self.folder / "t.safetensors")
        self.assertEqual([f.name for f in self.folder.iterdir()], ["t.safetensors.part"])
        part = tensors(self.folder / "t.safetensors.part")
        self.assertEqual(list(part)[-1], entries[at - 1].name)  # the tensors before the error are there

    def test_a_model_that_stops(self):
        def stop(*_):
            raise torch.OutOfMemoryError("not enough\nmemory")

        handle = loaded(TINY, "float32").text.layers[3].mlp.register_forward_pre_hook(stop)
        self.addCleanup(handle.remove)
        with self.assertRaisesRegex(CaptureFailed, "^pass 0: OutOfMemoryError: not enough memory$"):
            capture.run(loaded(TINY, "float32"), order_of(TINY), capture.Job([PROMPT]), self.folder / "t.safetensors")

    def test_a_disk_that_is_full(self):
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        job = capture.Job([PROMPT])
        with mock.patch.object(trace.Writer, "append", full), self.assertRaisesRegex(CaptureFailed, "No space left"):
            capture.run(loaded(TINY, "float32"), order_of(TINY), job, self.folder / "t.safetensors")


if __name__ == "__main__":
    unittest.main()
