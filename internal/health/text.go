package health

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// The small files next to the weights.
const (
	generationFile  = "generation_config.json"
	tokenizerConfig = "tokenizer_config.json"
	templateFile    = "chat_template.jinja"
	oldTemplateFile = "chat_template.json" // of multimodal checkpoints before transformers 4.53
)

// maxSmall bounds them: the longest published templates have some 20 kB, a tokenizer_config.json that lists every added
// token some 2 MB.
const maxSmall = 16 << 20

// Vocabulary has config.json's token ids; −1 for an id without an entry.
type Vocabulary struct {
	Size, BOS, PAD int
	EOS            []int
}

// Tokenizer checks that the tokenizer can be read and fits the vocabulary. It returns nil for a tokenizer without use.
func Tokenizer(s *Section, fsys fs.FS, v Vocabulary) *tokenizer.Tokenizer {
	for _, name := range []string{"tokenizer.json", "tokenizer.model"} {
		if Pointer(fsys, name) {
			s.Fail(hintPull, "%s is a git-lfs pointer, not the tokenizer", name)
			return nil
		}
	}
	t, err := tokenizer.Open(fsys)
	switch {
	case err != nil && missing(fsys, "tokenizer.json") && missing(fsys, "tokenizer.model"):
		s.Warn("without one, inputs are ids: --tokens 2,513,88", "no tokenizer: neither tokenizer.json nor tokenizer.model is there")
		return nil
	case err != nil:
		s.Fail("--reference hf makes the ids with the tokenizer of transformers; or give them: --tokens 2,513,88", "%v", err)
		return nil
	case t.Size() > v.Size:
		s.Fail("the tokenizer and config.json are from different models", "the tokenizer has %d ids, the model's vocabulary %d: the last ones have no row", t.Size(), v.Size)
		return t
	case t.Size() < v.Size:
		s.OK("tokenizer: %d ids; the last %d rows of the vocabulary of %d have no text", t.Size(), v.Size-t.Size(), v.Size)
	default:
		s.OK("tokenizer: %d ids, as many as the vocabulary has", t.Size())
	}
	if bos, ok := t.BOS(); ok && v.BOS >= 0 && bos != v.BOS {
		s.Warn("transformers puts the tokenizer's before a prompt, and so does tracediff", "BOS is %d in the tokenizer and %d in config.json", bos, v.BOS)
	}
	return t
}

// HasTokenizer reports whether a model directory has a file of a tokenizer.
func HasTokenizer(fsys fs.FS) bool {
	return !missing(fsys, "tokenizer.json") || !missing(fsys, "tokenizer.model")
}

func missing(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return errors.Is(err, fs.ErrNotExist)
}

// ids reads an integer, a list of them, or null.
type ids []int

// UnmarshalJSON reads what generation_config.json may have for an id.
func (l *ids) UnmarshalJSON(data []byte) error {
	var one *int
	if json.Unmarshal(data, &one) == nil {
		if *l = nil; one != nil {
			*l = ids{*one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]int)(l))
}

// Generation checks generation_config.json against config.json: the ids in it, which transformers' generate prefers. And it
// shows how tokens are chosen.
func Generation(s *Section, fsys fs.FS, v Vocabulary) {
	data, err := checkpoint.ReadFile(fsys, generationFile, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		s.OK("no %s: generation ends at the ids of config.json", generationFile)
		return
	}
	var g struct {
		BOS ids `json:"bos_token_id"`
		EOS ids `json:"eos_token_id"`
		PAD ids `json:"pad_token_id"`
	}
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil {
		s.Fail("transformers fails on it too: fetch it again, or remove it", "%s: %v", generationFile, err)
		return
	}
	agrees := true
	for _, id := range slices.Concat(g.BOS, g.EOS, g.PAD) {
		if id < 0 || id >= v.Size {
			agrees = false
			s.Fail("it may be from another model", "%s: id %d is outside the vocabulary of %d", generationFile, id, v.Size)
		}
	}
	differs := func(what string, here ids, config []int) {
		if len(here) == 0 || len(config) == 0 || slices.Equal(sorted(here), sorted(config)) {
			return
		}
		agrees = false
		s.Warn("generate follows generation_config.json; an engine that reads only config.json does not", "%s is %v in %s and %v in config.json",
			what, []int(here), generationFile, config)
	}
	differs("BOS", g.BOS, known(v.BOS))
	differs("EOS", g.EOS, v.EOS)
	differs("PAD", g.PAD, known(v.PAD))
	if agrees {
		s.OK("%s: BOS %v, EOS %v, PAD %v, the same as in config.json", generationFile, []int(g.BOS), []int(g.EOS), []int(g.PAD))
	}
	sampling(s, data)
}

func known(id int) []int {
	if id < 0 {
		return nil
	}
	return []int{id}
}

func sorted(list []int) []int {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// Template says where the chat template is, and returns the name of the file, empty for none. Base models have none, which
// is no fault.
func Template(s *Section, fsys fs.FS) string {
	for _, name := range []string{templateFile, oldTemplateFile, tokenizerConfig} {
		data, err := checkpoint.ReadFile(fsys, name, maxSmall)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && name != templateFile {
			data, err = templateIn(data)
		}
		if err != nil {
			s.Fail("transformers fails on it too: fetch it again", "%s: %v", name, err)
			return ""
		}
		if len(bytes.TrimSpace(data)) > 0 {
			s.OK("chat template in %s, %s", name, amount.Bytes(int64(len(data))))
			return name
		}
	}
	s.OK("no chat template: a model that was not tuned to follow turns has none")
	return ""
}

// templateIn returns the chat_template of a JSON file: a text, or a list of named ones.
func templateIn(data []byte) ([]byte, error) {
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	var one string
	var named []struct{ Name, Template string }
	switch {
	case len(config.Template) == 0 || string(config.Template) == "null":
	case json.Unmarshal(config.Template, &one) == nil:
	case json.Unmarshal(config.Template, &named) == nil:
		var all strings.Builder
		for _, t := range named {
			all.WriteString(t.Template)
		}
		one = all.String()
	default:
		return nil, fmt.Errorf("chat_template is %.40s, want a text", config.Template)
	}
	return []byte(one), nil
}
