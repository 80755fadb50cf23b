package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
)

// mixedReference is the golden that the dumps of these tests are compared with.
const mixedReference = "../../fixtures/golden/gemma3-tiny/decode.bfloat16.safetensors"

// plainDump runs the built-in model in bfloat16 on the token ids of the reference, and returns what a port dumps without saying anything of
// itself: module outputs and probabilities. edit changes the text of config.json, and with it what the port computes.
func plainDump(t *testing.T, edit func(config string) string) *stFile {
	t.Helper()
	ck, err := checkpoint.Open("../../fixtures/gemma3-tiny")
	must(t, err)
	t.Cleanup(func() { ck.Close() })
	config, err := order.ReadConfig([]byte(edit(string(ck.Config()))))
	must(t, err)
	list, err := order.New(config)
	must(t, err)
	ref, err := capture.Open(mixedReference)
	must(t, err)
	defer ref.Close()
	passes, err := ref.IDs()
	must(t, err)

	f := &stFile{}
	var reg hooks.Registry
	must(t, reg.Observe("*", func(e hooks.Event) error {
		if of, ok := list.Lookup(e.Name); ok && !of.Derived() && (of.Level <= 2 || strings.HasSuffix(e.Name, "self_attn.probs")) {
			x := e.Tensor
			f.tensors = append(f.tensors, &stTensor{capture.Key(e.Pass, e.Name, 0), x.DType.Safetensors(), x.Shape, bytes.Clone(x.Data)})
		}
		return nil
	}))
	model, err := gemma.New(ck, list, hooks.BF16, &reg, gemma.All)
	must(t, err)
	_, err = model.Run(context.Background(), &reg, gemma.Input{Passes: passes, LastLayer: gemma.All})
	must(t, err)
	return f
}

// withSoftmaxDigits gives the probabilities of one layer in one pass the digits of float32 that the softmax has before it is rounded: those of the golden.
func withSoftmaxDigits(t *testing.T, f *stFile, key string) {
	t.Helper()
	data, err := os.ReadFile(mixedReference)
	must(t, err)
	f.at(key).set("F32", readST(t, data).at(key+"_f32").values())
}

// unsigned writes the token ids as uint32.
func unsigned(f *stFile) {
	for _, x := range f.tensors {
		if !strings.HasSuffix(x.Key, order.InputIDs) {
			continue
		}
		ids := x.values()
		x.DType, x.Data = "U32", nil
		for _, id := range ids {
			x.Data = binary.LittleEndian.AppendUint32(x.Data, uint32(id))
		}
	}
}

// A tensor in another dtype than the others concerns its own entry and what reads it: a dump with token ids of uint32, or with the
// probabilities of one layer in float32 beside bfloat16, is verified like any other, and a wrong base of the rotary embedding in it is
// found at its place.
func TestOneTensorOfAnotherDType(t *testing.T) {
	healthy := func(config string) string { return config }
	wrongBase := func(config string) string {
		return strings.Replace(config, `"rope_theta": 10000.0`, `"rope_theta": 100.0`, 1)
	}
	for _, of := range []struct {
		name   string
		change func(f *stFile)
	}{
		{"nothing", func(*stFile) {}},
		{"ids as uint32", unsigned},
		{"probabilities in float32", func(f *stFile) { withSoftmaxDigits(t, f, "layers.1.self_attn.probs") }},
		{"both", func(f *stFile) { unsigned(f); withSoftmaxDigits(t, f, "pass1/layers.1.self_attn.probs") }},
	} {
		path := filepath.Join(t.TempDir(), "dump.safetensors")
		dump := func(edit func(string) string) {
			f := plainDump(t, edit)
			of.change(f)
			must(t, os.WriteFile(path, f.bytes(), 0o600))
		}
		dump(healthy)
		said := told(t, exitMatch, "compare", path, mixedReference)
		if strings.Contains(said, "not verified") || !strings.Contains(said, "recomputed on your port's inputs") || strings.Contains(said, "UNIDENTIFIED") {
			t.Errorf("%s: a healthy dump is not verified:\n%s", of.name, said)
		}
		dump(wrongBase)
		said = told(t, exitMismatch, "compare", path, mixedReference)
		if !strings.Contains(said, "first divergence: rotary.sliding.cos (VALUE)") || !strings.Contains(said, "theta is 100; config.json") {
			t.Errorf("%s: the wrong base is not found:\n%s", of.name, said)
		}
	}
}
