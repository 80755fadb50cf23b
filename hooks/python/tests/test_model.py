"""Loading: the loaded model is the whole checkpoint, with the order's configuration."""

import json
import os
import shutil
import sys
import unittest
from unittest import mock

import torch
from safetensors.torch import load_file, save_file

from common import ODD, ROOT, TINY, TestCase, loaded, order_of, tensors
from tracediff import capture, host, model, order
from tracediff.errors import BadInput


class Loading(TestCase):
    """model.load on unusable checkpoints."""

    def checkpoint(self, change=None, config=None, prefix=None):
        """Return a copy of the tiny checkpoint with changed tensors or settings."""
        folder = self.folder / "checkpoint"
        shutil.copytree(TINY, folder)
        tensors = load_file(TINY / "model.safetensors")
        if change:
            change(tensors)
        if prefix:
            tensors = {name.replace("model.", prefix, 1): t for name, t in tensors.items()}
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        if config:
            settings = json.loads((TINY / "config.json").read_text())
            (folder / "config.json").write_text(json.dumps(config(settings)))
        return folder

    def refused(self, pattern, folder, listed=None):
        with self.assertRaisesRegex(BadInput, pattern):
            model.load(folder, "float32", "cpu", listed or order_of(TINY))

    def test_missing_weight(self):
        name = "model.layers.3.laurel.linear_left.weight"
        self.refused(f"missing_keys.*{name}", self.checkpoint(lambda tensors: tensors.pop(name)))

    def test_missing_names_are_counted(self):
        def drop(tensors):
            for name in [n for n in tensors if ".mlp." in n]:
                del tensors[name]

        self.refused("and 17 more", self.checkpoint(drop))

    def test_misshapen_weight(self):
        def reshape(tensors):
            tensors["model.norm.weight"] = torch.ones(31)

        self.refused("(?s)model.norm.weight|size mismatch|mismatch", self.checkpoint(reshape))

    def test_half_a_file(self):
        folder = self.checkpoint()
        file = folder / "model.safetensors"
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        self.refused("does not load", folder)

    def test_no_checkpoint(self):
        self.refused("config.json is not there", self.folder / "none")
        folder = self.checkpoint()
        (folder / "model.safetensors").unlink()
        self.refused("no .*safetensors", folder)

    def test_config_of_another_kind(self):
        self.refused("model_type 'mistral' is not supp", self.checkpoint(config=lambda _: {"model_type": "mistral"}))

    def test_order_of_another_configuration(self):
        self.refused("vocab_size is 1013, the checkpoint has 1024", TINY, order_of(ODD))

    def test_every_field_of_the_configuration_is_compared(self):
        config = order_of(TINY).config
        flat = {k: v for k, v in config.items() if k != "gemma3n"} | config["gemma3n"]
        from transformers import AutoConfig

        resolved = AutoConfig.from_pretrained(TINY)
        for name, value in flat.items():
            other = (
                value + 1
                if type(value) in (int, float)
                else {dict: {"x": 1}, list: [], str: "other", bool: not value}[type(value)]
            )
            changed = {k: other if k == name else v for k, v in config.items()}
            changed["gemma3n"] = {k: other if k == name else v for k, v in config["gemma3n"].items()}
            with self.subTest(name), self.assertRaisesRegex(BadInput, rf"{name}(\.\w+)? is .*, the checkpoint has"):
                model.check_config(order.Order(changed, "", ()), resolved)
        with self.assertRaisesRegex(BadInput, "heads is 3, the checkpoint has not set"):
            model.check_config(order.Order(config | {"heads": 3}, "", ()), resolved)

    def test_rotary_theta_is_compared(self):
        def theta(settings):
            settings["rope_parameters"]["sliding_attention"]["rope_theta"] = 1e6
            return settings

        why = "rope_parameters.sliding_attention.rope_theta is 10000, .* has 1000000.0"
        self.refused(why, self.checkpoint(config=theta))

    def test_published_layout_is_the_same_model(self):
        outer = {"model_type": "gemma3n"}
        nested = self.checkpoint(prefix="model.language_model.", config=lambda c: outer | {"text_config": c})
        job = capture.Job([[2, 527, 876]])
        want = self.capture(TINY, "float32", job)
        out = self.folder / "nested.safetensors"
        capture.run(model.load(nested, "float32", "cpu", order_of(TINY)), order_of(TINY), job, out)
        for name, tensor in tensors(out).items():
            self.assert_same(tensor, want[name], name)

    def test_constants_keep_their_precision(self):
        text = loaded(TINY, "bfloat16").text
        self.assertEqual(text.rotary_emb.full_attention_inv_freq.dtype, torch.float32)
        self.assertEqual(text.embed_tokens.weight.dtype, torch.bfloat16)


class Host(TestCase):
    """Packages and digests."""

    def test_pins_are_those_of_the_requirements(self):
        text = (ROOT / "hooks" / "python" / "requirements.txt").read_text()
        for name, version in host.PINS.items():
            self.assertIn(f"\n{name}=={version}\n", text)

    def test_digest_is_that_of_sha256sum(self):
        import hashlib

        (self.folder / "model-00002.safetensors").write_bytes(b"two")
        (self.folder / "model-00001.safetensors").write_bytes(b"one")
        (self.folder / "other.bin").write_bytes(b"three")
        lines = "".join(
            f"{hashlib.sha256(data).hexdigest()}  model-0000{n}.safetensors\n" for n, data in ((1, b"one"), (2, b"two"))
        )
        self.assertEqual(host.weights_digest(self.folder), "sha256:" + hashlib.sha256(lines.encode()).hexdigest())
        self.assertEqual(host.weights_digest(self.folder / "none"), "unknown")

    def test_digest_of_large_weights_is_that_of_their_chunks(self):
        import hashlib

        def sha(data: bytes) -> bytes:
            return hashlib.sha256(data).digest()

        file = self.folder / "model.safetensors"
        file.write_bytes(b"a" * 10 + b"b" * 10 + b"c")
        parts = sha(sha(b"a" * 10) + sha(b"b" * 10) + sha(b"c")).hex()
        want = "chunks:" + sha(f"{parts}  model.safetensors\n".encode()).hex()
        cache = self.folder / "cache" / "tracediff" / "digests.json"
        cache.parent.mkdir(parents=True)
        with (
            mock.patch.object(host, "LARGE", 20),
            mock.patch.object(host, "CHUNK", 10),
            mock.patch.dict(os.environ, XDG_CACHE_HOME=str(cache.parent.parent)),
        ):
            self.assertEqual(host.weights_digest(self.folder), want)
            for text in ("", "[]", '{"a": 1}', json.dumps({str(file): {"chunks": "0" * 64}})):  # nothing is remembered
                cache.write_text(text)
                self.assertEqual(host.weights_digest(self.folder), want)
            now = file.stat()
            told = {
                "size": now.st_size,
                "mtime_ns": now.st_mtime_ns,
                "ctime_ns": now.st_ctime_ns,
                "inode": now.st_ino,
                "device": now.st_dev,
                "chunks": "0" * 64,
            }
            cache.write_text(json.dumps({str(file): told}))
            remembered = "chunks:" + sha(f"{'0' * 64}  model.safetensors\n".encode()).hex()
            self.assertEqual(host.weights_digest(self.folder), remembered if sys.platform == "linux" else want)
            file.write_bytes(b"a" * 10 + b"b" * 10 + b"d")
            self.assertNotIn(host.weights_digest(self.folder), (want, remembered))

    @unittest.skipUnless(sys.platform == "linux", "elsewhere nothing is remembered")
    def test_digest_of_large_weights_is_remembered(self):
        file = self.folder / "model.safetensors"
        file.write_bytes(b"0123456789")
        cache = self.folder / "cache" / "tracediff" / "digests.json"
        with (
            mock.patch.multiple(host, LARGE=9, CHUNK=4),
            mock.patch.dict(os.environ, XDG_CACHE_HOME=str(cache.parent.parent)),
        ):
            digest = host.weights_digest(self.folder)
            self.assertFalse(cache.exists(), "a file that was only just written may be written again at the same time")
            with mock.patch.object(host, "SETTLE", -1):
                self.assertEqual(host.weights_digest(self.folder), digest)
            known = json.loads(cache.read_text())
            self.assertEqual(list(known), [str(file)])
            with mock.patch.object(host, "_chunk", side_effect=AssertionError("hashed again")):
                self.assertEqual(host.weights_digest(self.folder), digest)
            file.write_bytes(b"012345678!")
            self.assertNotEqual(host.weights_digest(self.folder), digest)


if __name__ == "__main__":
    unittest.main()
