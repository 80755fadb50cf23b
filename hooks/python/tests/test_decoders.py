"""Captures of the plain decoders: the tensors fit together, and belong to the published model."""

import json
import shutil
import unittest

import torch
from safetensors.torch import load_file, save_file

from common import ROOT, TestCase, loaded, order_of, tensors
from tracediff import capture, model, trace
from tracediff.errors import BadInput

NAMES = (
    "gemma3-tiny",
    "gemma3-multimodal",
    "gemma2-tiny",
    "gemma2-variant",
    "gemma-tiny",
    "llama-tiny",
    "qwen2-tiny",
    "qwen3-tiny",
)
CHECKPOINTS = tuple(ROOT / "fixtures" / name for name in NAMES)
MULTIMODAL = ROOT / "fixtures" / "gemma3-multimodal"
DTYPES = ("float32", "bfloat16")
PROMPT = [2, 113, 88, 129, 7, 64, 113, 0, 31]  # two windows of 4


def gemma(name):
    """Report whether norms add 1 to their weight and the embedding is scaled."""
    return name.startswith("gemma")


class Observing(TestCase):
    """Hooks change no result, and the trace has every entry of the order."""

    def test_changes_nothing_and_all_is_there(self):
        for checkpoint in CHECKPOINTS:
            for dtype in DTYPES:
                with self.subTest(f"{checkpoint.name} {dtype}"):
                    self.check(checkpoint, dtype)

    def check(self, checkpoint, dtype):
        outer, listed = loaded(checkpoint, dtype).outer, order_of(checkpoint)
        seen = self.capture(checkpoint, dtype, capture.Job([PROMPT], decode=2))
        self.assertEqual(list(seen), [trace.key(e.name, n) for n in range(3) for e in listed.entries])
        cache, past = None, 0
        for n in range(3):
            ids = seen[trace.key("input_ids", n)]
            with torch.inference_mode():
                result = outer(input_ids=ids, past_key_values=cache, use_cache=True)
            self.assert_same(seen[trace.key("logits", n)], result.logits, f"pass {n}")
            for e in listed.entries:
                self.assertEqual(tuple(seen[trace.key(e.name, n)].shape), e.size(ids.shape[1], past, listed.window))
            cache, past = result.past_key_values, past + ids.shape[1]

    def test_decoding_is_the_prefill_of_the_same_tokens(self):
        for checkpoint in CHECKPOINTS:
            steps = self.capture(checkpoint, "float32", capture.Job([PROMPT[:6], *([n] for n in PROMPT[6:])]))
            whole = self.capture(checkpoint, "float32", capture.Job([PROMPT]))
            for n in range(1, 4):
                want = whole["logits"][:, 5 + n : 6 + n]
                torch.testing.assert_close(steps[trace.key("logits", n)], want, rtol=1e-4, atol=1e-4)


class Arithmetic(TestCase):
    """Every tensor follows from earlier tensors, by the model's own modules or by the operation of the order."""

    def each(self):
        """Yield the model, its order and the tensors of a prefill and of a decode step."""
        for checkpoint in CHECKPOINTS:
            for dtype in DTYPES:
                seen = self.capture(checkpoint, dtype, capture.Job([PROMPT], decode=1))
                for prefix in ("", "pass1/"):
                    self.where = f"{checkpoint.name} {dtype} {prefix}"
                    here = {k.removeprefix(prefix): v for k, v in seen.items() if ("/" in k) == bool(prefix)}
                    yield loaded(checkpoint, dtype), order_of(checkpoint).config, here

    def layers(self):
        """Yield model, settings, tensors, the path of each layer and the layer's type."""
        for runner, config, seen in self.each():
            for i, kind in enumerate(config["layer_types"]):
                yield runner, config, seen, f"layers.{i}.", kind.removesuffix("_attention")

    def test_embedding(self):
        for runner, config, seen in self.each():
            rows = torch.nn.functional.embedding(seen["input_ids"], runner.text.embed_tokens.weight)
            self.assert_same(seen["embed_tokens.lookup"], rows, "lookup")
            if gemma(config["model_type"]):
                rows = rows * torch.tensor(config["hidden_size"] ** 0.5).to(rows.dtype)
            self.assert_same(seen["embed_tokens"], rows, "embed_tokens")
            self.assert_same(seen["layers.0.in"], rows, "layers.0.in")

    def test_residuals(self):
        for _, config, seen, at, _ in self.layers():
            attended, forwarded = "self_attn.o_proj", "mlp.down_proj"
            if at + "post_feedforward_layernorm" in seen:
                attended, forwarded = "post_attention_layernorm", "post_feedforward_layernorm"
            self.assertEqual("post_feed" in forwarded, config["model_type"] in ("gemma3_text", "gemma2"))
            self.assert_same(seen[at + "in"] + seen[at + attended], seen[at + "attn_residual"], at + "attn_residual")
            self.assert_same(seen[at + "attn_residual"] + seen[at + forwarded], seen[at + "out"], at + "out")
            self.assert_same(seen[at + "mlp.act_fn"] * seen[at + "mlp.up_proj"], seen[at + "mlp.gated"], at + "gated")

    def test_heads(self):
        for runner, config, seen, at, kind in self.layers():
            at += "self_attn."
            size, tokens = config["head_dim"], seen["input_ids"].shape[1]
            table = f"rotary.{kind}." if f"rotary.{kind}.cos" in seen else "rotary."
            for which in "qk":
                value = seen[f"{at}{which}_proj"].unflatten(-1, (-1, size))
                if f"{at}{which}_norm" in seen:
                    with torch.inference_mode():
                        value = runner.module(f"{at}{which}_norm")(value)
                    self.assert_same(seen[f"{at}{which}_norm"], value, f"{at}{which}_norm")
                value = value.transpose(1, 2)
                turned = torch.cat((-value[..., size // 2 :], value[..., : size // 2]), -1)
                value = value * seen[table + "cos"] + turned * seen[table + "sin"]
                self.assert_same(seen[f"{at}{which}_rope"], value, f"{at}{which}_rope")
            self.assert_same(seen[at + "k_rope"], seen[at + "keys"][..., -tokens:, :], at + "keys")
            values = seen[at + "v_proj"].unflatten(-1, (-1, size)).transpose(1, 2)
            self.assert_same(values, seen[at + "values"][..., -tokens:, :], at + "values")

    def test_scores(self):
        for _, config, seen, at, kind in self.layers():
            at += "self_attn."
            groups = config["num_attention_heads"] // config["num_key_value_heads"]
            keys = seen[at + "keys"].repeat_interleave(groups, 1)
            scale = config.get("query_pre_attn_scalar", config["head_dim"]) ** -0.5
            # A product of the same numbers laid out otherwise in memory is summed in another order.
            scores = seen[at + "q_rope"] @ keys.transpose(2, 3) * scale
            torch.testing.assert_close(seen[at + "scores"], scores, rtol=1e-2, atol=1e-3)
            scores = seen[at + "scores"]
            capped = config["model_type"] == "gemma2" and config.get("attn_logit_softcapping") is not None
            self.assertEqual(at + "scores_softcap" in seen, capped)
            if at + "scores_softcap" in seen:
                scores = torch.tanh(scores / config["attn_logit_softcapping"]) * config["attn_logit_softcapping"]
                self.assert_same(scores, seen[at + "scores_softcap"], at + "scores_softcap")
            self.assert_same(scores + seen["mask." + kind], seen[at + "scores_masked"], at + "scores_masked")

    def test_logits(self):
        for runner, config, seen in self.each():
            head = seen["norm"] @ runner.outer.lm_head.weight.T
            torch.testing.assert_close(seen["lm_head"], head, rtol=2e-2, atol=1e-2)
            want = seen["lm_head"]
            if cap := config.get("final_logit_softcapping"):
                want = torch.tanh(want / cap) * cap
            self.assert_same(want, seen["logits"], "logits")


class Multimodal(TestCase):
    """A checkpoint of text and images, run on text only."""

    def text_only(self):
        """Return a copy of the checkpoint as a text model: text settings, and weights under a text model's names."""
        folder = self.folder / "text"
        folder.mkdir()
        settings = json.loads((MULTIMODAL / "config.json").read_text())["text_config"]
        (folder / "config.json").write_text(json.dumps(settings))
        old, new = "language_model.model.", "model."
        weights = load_file(MULTIMODAL / "model.safetensors")
        weights = {new + n.removeprefix(old): t for n, t in weights.items() if n.startswith(old)}
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        return folder

    def test_is_the_text_model(self):
        listed, folder = order_of(MULTIMODAL), self.text_only()
        job = capture.Job([PROMPT], decode=2)
        for dtype in DTYPES:
            want, out = self.capture(MULTIMODAL, dtype, job), self.folder / f"{dtype}.safetensors"
            capture.run(model.load(folder, dtype, "cpu", listed), listed, job, out)
            for name, tensor in tensors(out).items():
                self.assert_same(tensor, want[name], f"{dtype} {name}")

    def test_the_text_class_would_run_random_weights(self):
        folder = self.text_only()
        shutil.copy(MULTIMODAL / "model.safetensors", folder)
        with self.assertRaisesRegex(BadInput, "missing_keys"):
            model.load(folder, "float32", "cpu", order_of(MULTIMODAL))

    def test_order_of_another_configuration(self):
        with self.assertRaisesRegex(BadInput, "vocab_size is 160, the checkpoint has 150"):
            model.load(MULTIMODAL, "float32", "cpu", order_of(ROOT / "fixtures" / "gemma3-tiny"))


class Configurations(TestCase):
    """Every field of an order is compared with the checkpoint, and every field of the checkpoint with the order."""

    def test_both_ways(self):
        from transformers import AutoConfig

        for checkpoint in CHECKPOINTS:
            outer, config = AutoConfig.from_pretrained(checkpoint), order_of(checkpoint).config
            self.assertEqual(list(model.config.differences(config, model.config.resolve(outer))), [])
            for name in config:
                less = {k: v for k, v in config.items() if k != name}
                found = list(model.config.differences(less, model.config.resolve(outer)))
                with self.subTest(f"{checkpoint.name} {name}"):
                    self.assertEqual(len(found), 1)
                    self.assertRegex(found[0], f"^{name} is not set, the checkpoint has ")


if __name__ == "__main__":
    unittest.main()
