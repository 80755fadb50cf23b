"""Faults change the model at the expected places, and are removed again; the page about the faults names every fault.
"""

import collections
import importlib
import json
import re
import sys
import types
import unittest

import torch
from common import ROOT, TINY, TestCase, loaded, order_of
from tracediff import capture

sys.path.insert(0, str(ROOT / "fixtures"))

import plant
from faults import catalogue, halves
from faults.planting import Plant
from safetensors.torch import save_file
from tracediff.errors import BadInput

JOB = capture.Job([[2, 417, 747, 609, 417]], 1)


class Planting(TestCase):
    """Changing a model for a while."""

    def test_every_fault_fits_and_is_taken_out_again(self):
        tiny = [f for f in catalogue.of_half(1) + catalogue.of_half(2) if f.checkpoint == TINY.name]
        self.assertGreater(len(tiny), 55)
        before = self.capture(TINY, "float32", JOB)
        for fault in tiny:
            with Plant(loaded(TINY, "float32")) as planted:
                fault.plant(planted)
        after = self.capture(TINY, "float32", JOB)
        for name, tensor in before.items():
            self.assert_same(tensor, after[name], name)

    def test_a_piece_that_is_not_there_once_is_refused(self):
        with Plant(loaded(TINY, "float32")) as planted:
            for piece in ("no such text", "self"):
                with self.assertRaisesRegex(LookupError, piece):
                    planted.method("layers.0.laurel", "forward", piece, "pass")
            with self.assertRaisesRegex(LookupError, "no module"):
                planted.value("layers.9.laurel", "x", 1)

    def test_two_changes_of_one_function_add_up(self):
        with Plant(loaded(TINY, "float32")) as planted:
            planted.method("layers.0.laurel", "forward", "hidden_states + normed_", "2 * normed_")
            planted.method("layers.0.laurel", "forward", "2 * normed_", "3 * normed_")
            found = self.capture(TINY, "float32", JOB)
            want = 3 * found["layers.0.laurel.post_laurel_norm"]
            self.assert_same(found["layers.0.laurel"], want, "layers.0.laurel")

    def test_a_weight_that_is_tied_changes_alone(self):
        model = loaded(TINY, "float32")
        with Plant(model) as planted:
            planted.weight("embed_tokens", lambda w: w * 2)
            self.assertFalse((model.text.embed_tokens.weight == model.outer.lm_head.weight).all())
        self.assertIs(model.text.embed_tokens.weight, model.outer.lm_head.weight)


class Guilty(unittest.TestCase):
    """A fault's description in faults.json."""

    def test_passes_and_order(self):
        fault = next(f for f in catalogue.ALL if f.name == "keys-evicted")
        found = [(g["pass"], g["name"]) for g in plant.guilty(fault, order_of(TINY), 3)]
        names = [f"layers.{i}.self_attn.keys" for i in (0, 1, 3)]
        self.assertEqual(found, [(p, name) for p in (1, 2) for name in names])

    def test_every_fault_is_of_a_half(self):
        self.assertEqual([f.half for f in catalogue.ALL], sorted(f.half for f in catalogue.ALL))
        self.assertEqual({f.half for f in catalogue.ALL}, set(halves.NUMBERS))


class Shown(TestCase):
    """The effects that a run has to show of its fault."""

    NAMES = ("a", "b", "c")

    def record(self, changed=(), hidden=""):
        """Check a run of one pass in which `changed` differ from the healthy run; b and c are listed as guilty.

        b is computed from a, and c from b.
        """
        metadata = {"tracediff.entries": json.dumps(self.NAMES), "tracediff.passes": "1"}
        for file in ("healthy", "faulty"):
            numbers = {n: torch.tensor([1.0, 3.0 if file == "faulty" and n in changed else 2.0]) for n in self.NAMES}
            save_file(numbers, self.folder / file, metadata)
        said = {"dtype": "float32", "reference": "healthy", "file": "faulty", "hidden": hidden}
        said["guilty"] = [{"pass": 0, "name": n} for n in ("b", "c")]
        inputs = {"a": (), "b": ("a",), "c": ("b",)}
        entries = [
            types.SimpleNamespace(name=n, inputs=[types.SimpleNamespace(name=i, prev=0) for i in inputs[n]])
            for n in self.NAMES
        ]
        return plant.shown(catalogue.of_half(2)[0], self.folder, said, types.SimpleNamespace(entries=entries))

    def test_a_run_shows_what_its_fault_says(self):
        self.assertEqual(self.record("bc")["differs"], 1)
        self.assertEqual(self.record("", "too small")["differs"], 0)
        self.assertEqual(self.record("c", "too small")["differs"], 1)

    def test_a_run_that_shows_something_else_is_refused(self):
        for changed, hidden, why in (
            ("", "", "no bit"),
            ("ab", "", "'a'. differs, its inputs do not, and it is not said to be guilty"),
            ("c", "", "c'. differs first"),
        ):
            with self.assertRaisesRegex(BadInput, why):
                self.record(changed, hidden)
        with self.assertRaisesRegex(BadInput, "not said to be guilty"):
            self.record("a", "too small")

    def test_each_says_what_a_name_has_to_say(self):
        page = (ROOT / "docs" / "mistakes.md").read_text(encoding="utf-8")
        headings = {h.lower().replace("'", "").replace(" ", "-") for h in re.findall(r"(?m)^### (.*)$", page)}
        for fault in catalogue.ALL:
            self.assertEqual(bool(fault.right), fault.half > 1, fault.name)
            self.assertIn(fault.mistake, headings | {""}, fault.name)

    def test_every_family_has_some(self):
        families = collections.Counter(fault.checkpoint.partition("-")[0] for fault in catalogue.of_half(2))
        self.assertEqual(set(families), {"gemma", "gemma2", "gemma3", "gemma3n", "llama", "qwen2", "qwen3"})
        self.assertGreaterEqual(min(families.values()), 10)


class Page(unittest.TestCase):
    """docs/mistakes.md."""

    def test_where_transformers_does_it_right_is_in_transformers(self):
        text = (ROOT / "docs" / "mistakes.md").read_text(encoding="utf-8")
        named = re.findall(r"`([A-Z][\w.]+)`", "".join(re.findall(r"- \*\*Reference\*\*:.*?\n(?=- )", text, re.DOTALL)))
        self.assertGreater(len(named), 80)
        for name in named:
            owner, *attributes = name.split(".")
            family = re.match("Gemma3n|Gemma3|Gemma2|Gemma|Llama|Qwen2|Qwen3", owner)[0].lower()
            found = getattr(importlib.import_module(f"transformers.models.{family}.modeling_{family}"), owner)
            for attribute in attributes:
                found = getattr(found, attribute)


if __name__ == "__main__":
    unittest.main()
