"""The recorder of training steps, and the traces that it leaves."""

import json

import torch

from common import TestCase, tensors
from tracediff import trace, training
from tracediff.errors import BadInput


def small() -> torch.nn.Module:
    """Return a model of three parameters."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1, bias=False))


class Training(TestCase):
    """The trace of a Recorder."""

    def setUp(self) -> None:
        super().setUp()
        self.path = self.folder / "training.safetensors"

    def test_a_step_is_a_pass_of_loss_and_gradients(self):
        model = small()
        want = {}
        with training.Recorder(self.path, model) as recorder:
            for step in range(30):  # more than the header has room for at first
                loss = model(torch.ones(4, 3) * step).square().mean()
                loss.backward()
                recorder.step(loss)
                prefix = f"pass{step}/" if step else ""
                want[prefix + "loss"] = loss.detach()
                for name, p in model.named_parameters():
                    want[f"{prefix}grad/{name}"] = p.grad.clone()
                model.zero_grad()
        got = tensors(self.path)
        self.assertEqual(list(got), list(want))
        for name, value in want.items():
            self.assertTrue(torch.equal(got[name], value), name)

    def test_what_was_to_come_is_listed_and_what_is_none_is_left_out(self):
        model = small()
        with training.Recorder(self.path, model) as recorder:
            loss = model[0](torch.ones(1, 3)).sum()  # the second layer takes no part
            loss.backward()
            recorder.step(loss)
        with trace.Reader(self.path) as reader:
            self.assertEqual(list(reader.tensors), ["loss", "grad/0.weight", "grad/0.bias"])
            listed = json.loads(reader.metadata["tracediff.entries"])
        self.assertEqual(listed, ["loss", "grad/0.weight", "grad/0.bias", "grad/1.weight"])

    def test_frozen_and_unwanted_parameters_are_not_listed(self):
        model = small()
        model[0].bias.requires_grad_(False)
        with training.Recorder(self.path, model, only=["0.*"]) as recorder:
            loss = model(torch.ones(1, 3)).sum()
            loss.backward()
            recorder.step(loss)
        self.assertEqual(list(tensors(self.path)), ["loss", "grad/0.weight"])

    def test_sparse_gradients_are_written_dense(self):
        model = torch.nn.Embedding(5, 2, sparse=True)
        with training.Recorder(self.path, model) as recorder:
            loss = model(torch.tensor([1, 3])).sum()
            loss.backward()
            recorder.step(loss)
        self.assertEqual(tensors(self.path)["grad/weight"].tolist(), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 0]])

    def test_nothing_to_record_and_names_without_a_place_are_refused(self):
        with self.assertRaises(BadInput):
            training.Recorder(self.path, small(), only=["2.*"])
        odd = torch.nn.ParameterDict({"a/b": torch.nn.Parameter(torch.ones(1))})
        with self.assertRaises(BadInput):
            training.Recorder(self.path, odd)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_exception_marks_the_trace_as_failed(self):
        with self.assertRaises(ZeroDivisionError), training.Recorder(self.path, small()) as recorder:
            recorder.step(torch.tensor(1.0))
            raise ZeroDivisionError("loop")
        with trace.Reader(self.folder / "training.safetensors.part") as reader:
            self.assertEqual(reader.status, "failed")
            self.assertEqual(list(reader.tensors), ["loss"])
