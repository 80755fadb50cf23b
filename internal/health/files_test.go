package health_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/health"
)

func file(data []byte) *fstest.MapFile { return &fstest.MapFile{Data: data, Mode: 0o666} }

func tensor(name string) checkpointtest.Tensor {
	return checkpointtest.Tensor{Name: name, Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{2}, Data: make([]byte, 8)}}
}

func TestWeightFiles(t *testing.T) {
	whole := checkpointtest.File([]checkpointtest.Tensor{tensor("b"), tensor("a")})
	for _, c := range []struct {
		name  string
		files fstest.MapFS
		names []string
		want  []string
	}{
		{"whole", fstest.MapFS{"model.safetensors": file(whole)}, []string{"a", "b"}, []string{"ok: 1 weight file, 2 tensors, 136 B"}},
		{"cut in the data", fstest.MapFS{"model.safetensors": file(whole[:len(whole)-1])}, nil, []string{"error: model.safetensors: cut short: it has 135 bytes of the 136 that its header declares"}},
		{"more than its tensors", fstest.MapFS{"model.safetensors": file(append(whole[:len(whole):len(whole)], 0))}, nil, []string{"error: model.safetensors: 1 bytes follow the last tensor"}},
		{"a header longer than any file", fstest.MapFS{"model.safetensors": file([]byte("\xff\xff\xff\xff\xff\xff\xff\x7f{}"))}, nil, []string{"error: model.safetensors: a header of 9223372036854775807 bytes: safetensors allows 100000000"}},
		{"a folder", fstest.MapFS{"model.safetensors/x": file(nil)}, nil, []string{"error: model.safetensors: not a regular file"}},
	} {
		var s health.Section
		names, sound := health.WeightFiles(&s, c.files)
		if diff := cmp.Diff(c.want, texts(s)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if diff := cmp.Diff(c.names, names); diff != "" || sound != (c.names != nil) {
			t.Errorf("%s: sound %v, %s", c.name, sound, diff)
		}
	}
}

// The small files may hold anything: every outcome is a line, none a panic.
func FuzzTextFiles(f *testing.F) {
	f.Add([]byte(`{"bos_token_id": 2, "eos_token_id": [1, 106], "pad_token_id": null, "chat_template": "{{ x }}"}`))
	f.Add([]byte(`{"bos_token_id": "2", "chat_template": [{"name": "default", "template": "{{ x }}"}]}`))
	f.Add([]byte(`{"eos_token_id": [[1]], "chat_template": 7}`))
	f.Add([]byte("version https://git-lfs.github.com/spec/v1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		files := fstest.MapFS{}
		for _, name := range []string{"generation_config.json", "tokenizer_config.json", "tokenizer.json", "model.safetensors.index.json"} {
			files[name] = file(data)
		}
		v := health.Vocabulary{Size: 100, BOS: 2, PAD: -1, EOS: []int{1}}
		for _, check := range []func(s *health.Section){
			func(s *health.Section) { health.Generation(s, files, v) },
			func(s *health.Section) { health.Template(s, files) },
			func(s *health.Section) { health.Tokenizer(s, files, v) },
			func(s *health.Section) { health.WeightFiles(s, files) },
		} {
			var s health.Section
			check(&s)
			if len(s.Lines) == 0 {
				t.Error("no line")
			}
			for _, l := range s.Lines {
				if l.What == "" || strings.Contains(l.What, "\n") || l.Status != health.OK && l.Hint == "" {
					t.Errorf("%+v", l)
				}
			}
		}
	})
}

func TestGeneration(t *testing.T) {
	v := health.Vocabulary{Size: 100, BOS: 2, PAD: -1, EOS: []int{1, 7}}
	for text, want := range map[string][]string{
		`{"bos_token_id": 2, "eos_token_id": [7, 1, 1], "pad_token_id": 9}`: {"ok: generation_config.json: BOS [2], EOS [7 1 1], PAD [9], the same as in config.json"},
		`{"eos_token_id": null}`:                       {"ok: generation_config.json: BOS [], EOS [], PAD [], the same as in config.json"},
		`{"bos_token_id": 3}`:                          {"warning: BOS is [3] in generation_config.json and [2] in config.json"},
		`{"bos_token_id": -5, "eos_token_id": [1, 7]}`: {"error: generation_config.json: id -5 is outside the vocabulary of 100", "warning: BOS is [-5] in generation_config.json and [2] in config.json"},
		`{"bos_token_id": 3, "do_sample": true, "temperature": 0.7, "top_k": 64, "top_p": 0.95}`: {
			"warning: BOS is [3] in generation_config.json and [2] in config.json",
			"ok: generation_config.json: do_sample true, temperature 0.7, top_k 64, top_p 0.95; captures are greedy whatever it says",
		},
		`{"bos_token_id": 3, "temperature": "x", "do_sample": "maybe", "top_k": -5, "top_p": 1.5}`: {
			"warning: BOS is [3] in generation_config.json and [2] in config.json",
			`error: generation_config.json: do_sample is "maybe", want true or false`,
			`error: generation_config.json: temperature is "x", want a number, 0 or more`,
			"error: generation_config.json: top_k is -5, want a whole number, 0 or more",
			"error: generation_config.json: top_p is 1.5, want a number from 0 to 1",
		},
		`{"bos_token_id": 3, "do_sample": true, "temperature": 0, "top_k": null}`: {
			"warning: BOS is [3] in generation_config.json and [2] in config.json",
			"error: generation_config.json: temperature is 0 and do_sample is true: logits are divided by it",
			"ok: generation_config.json: do_sample true, temperature 0; captures are greedy whatever it says",
		},
	} {
		var s health.Section
		health.Generation(&s, fstest.MapFS{"generation_config.json": file([]byte(text))}, v)
		if diff := cmp.Diff(want, texts(s)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
