"""Reading the order that the Go command prints, and choosing from it."""

import json
import unittest

from common import ODD, TINY, TestCase, order_of, order_text
from tracediff import order
from tracediff.errors import BadInput


class Reading(TestCase):
    """What the reader makes of an order file."""

    def test_counts(self):
        for checkpoint, names, derived in ((TINY, 422, 33), (ODD, 317, 26)):
            entries = order_of(checkpoint).entries
            self.assertEqual(len(entries), names)
            self.assertEqual(sum(e.source.kind == "derived" for e in entries), derived)

    def test_config_is_kept_as_it_is_written(self):
        config = '{"rms_norm_eps":0.000001, "vocab_size": 9 , "max_position_embeddings":7,"s":"}\\""}'
        entry = json.dumps(json.loads(order_text(TINY))["entries"][0])
        read = order.parse('{ "version" : 1,\n "config": ' + config + ',"entries":[' + entry + "]}")
        self.assertEqual(read.config_text, config)

    def test_sizes_of_a_pass(self):
        entries = {e.name: e for e in order_of(TINY).entries}
        window = order_of(TINY).window
        for name, past, tokens, want in (
            ("layers.0.self_attn.keys", 0, 8, (1, 2, 8, 8)),  # sliding: all keys of a prefill
            ("layers.0.self_attn.keys", 8, 1, (1, 2, 4, 8)),  # then the last three, and the new one
            ("layers.0.self_attn.keys", 2, 1, (1, 2, 3, 8)),
            ("layers.2.self_attn.keys", 8, 1, (1, 2, 9, 8)),
            ("logits", 8, 3, (1, 3, 1024)),
        ):
            self.assertEqual(entries[name].size(tokens, past, window), want, name)

    def test_sources_in_short(self):
        short = {e.name: str(e.source) for e in order_of(TINY).entries}
        for name, want in {
            "input_ids": "input:input_ids",
            "position_ids": "in:layers.0(position_ids)",
            "inputs_embeds": "call:project_per_layer_inputs(inputs_embeds)",
            "rotary.full.sin": "out:rotary_emb[full_attention].1",
            "layers.1.altup.correct.router_norm": "out:layers.1.altup.router_norm#1",
            "layers.1.self_attn.k_rope": "attn:layers.1.self_attn(key)[-T:]",
            "layers.1.attn_gated": "derived",
            "logits": "result:logits",
        }.items():
            self.assertEqual(short[name], want)

    def test_is_refused(self):
        good = json.loads(order_text(TINY))
        first, second = good["entries"][0], good["entries"][3]
        source = second["hf"] | {"kind": "guess"}
        bare = {"name": "a", "layer": -1, "level": 1, "shape": [], "axes": ""}
        cases = {
            "not JSON": "{",
            "a list": "[]",
            "deep nesting": "[" * 100_000,
            "another version": json.dumps(good | {"version": 2}),
            "names only": json.dumps({"version": 1, "entries": [bare]}),
            "no entries": json.dumps(good | {"entries": []}),
            "a name twice": json.dumps(good | {"entries": [first, first]}),
            "an input that comes later": json.dumps(good | {"entries": [second]}),
            "an unknown kind": json.dumps(good | {"entries": [first, second | {"hf": source, "inputs": []}]}),
            "an unknown symbol": json.dumps(good | {"entries": [first | {"shape": [1, "U"]}]}),
            "a field that is new": json.dumps(good | {"entries": [first | {"hf": first["hf"] | {"new": 1}}]}),
            "an unknown dtype": json.dumps(good | {"entries": [first | {"dtype": "int3"}]}),
            "a level that is text": json.dumps(good | {"entries": [first | {"level": "1"}]}),
            "no operation": json.dumps(good | {"entries": [first | {"op": {}}]}),
            "no vocabulary": json.dumps(good | {"config": {}}),
            "no place": json.dumps(good | {"entries": [{k: v for k, v in first.items() if k != "hf"}]}),
        }
        for reason, text in cases.items():
            path = self.folder / "order.json"
            path.write_text(text)
            with self.subTest(reason), self.assertRaises(BadInput) as caught:
                order.load(path)
            self.assertIn("tracediff order", caught.exception.hint)


class Scopes(unittest.TestCase):
    """Scope.select."""

    def names(self, *args):
        return [e.name for e in order.Scope(*args).select(order_of(TINY).entries)]

    def test_everything(self):
        self.assertEqual(self.names(3), [e.name for e in order_of(TINY).entries])

    def test_a_level(self):
        names = self.names(1)
        self.assertIn("layers.3.self_attn.o_proj", names)
        self.assertNotIn("layers.3.self_attn.q_proj", names)
        self.assertEqual(len(names), sum(e.level == 1 for e in order_of(TINY).entries))

    def test_layers_end_with_the_last_of_them(self):
        names = self.names(3, "1-2,4")
        self.assertEqual(names[0], "input_ids")
        self.assertEqual(names[-1], "layers.4.out")
        layers = {n.split(".")[1] for n in names if n.startswith("layers.")}
        self.assertEqual(layers, {"1", "2", "4"})
        self.assertIn("rotary.full.cos", names)
        self.assertEqual({n.split(".")[1] for n in self.names(1, "5-") if n.startswith("layers.")}, {"5", "6"})

    def test_layers_that_are_no_layers(self):
        for text in ("a", "1-b", "1" * 5000, "-3", "1,,2", "7", "3-2"):
            with self.subTest(text), self.assertRaises(BadInput):
                self.names(3, text)


if __name__ == "__main__":
    unittest.main()
