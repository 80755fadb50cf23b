package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
)

// maxAround bounds the ids that a post-processor puts around a text. Published ones put one or two.
const maxAround = 64

// A frame is what a post-processor puts around the ids of a text.
type frame struct {
	before, after []int
}

// readPostProcessor reads the field post_processor. size is the number of ids, below which all of its ids are.
func readPostProcessor(raw json.RawMessage, size int) (frame, error) {
	var all frame
	if isNull(raw) {
		return all, nil
	}
	parts, err := sequence(raw, "processors")
	if err != nil {
		return frame{}, fmt.Errorf("post_processor: %w", err)
	}
	puts := 0 // how many are not ByteLevel
	for _, part := range parts {
		var f frame
		var err error
		switch kind := typeOf(part); kind {
		case "ByteLevel": // it changes the places of tokens in the text only
			if _, _, err := readByteLevel(part); err != nil {
				return frame{}, fmt.Errorf("post_processor: ByteLevel: %w", err)
			}
			continue
		case "TemplateProcessing":
			f, err = readTemplateProcessing(part)
		case "RobertaProcessing", "BertProcessing":
			f, err = readRoberta(part)
		default:
			err = fmt.Errorf("not implemented; %s", passIDs)
		}
		if err != nil {
			return frame{}, fmt.Errorf("post_processor: %q: %w", typeOf(part), err)
		}
		// `tokenizers` gives the second of two the parts that the first has made, one by one. The second fails, or puts its ids around each part.
		if puts++; puts > 1 {
			return frame{}, fmt.Errorf("post_processor: two that put ids around a text are not implemented; %s", passIDs)
		}
		all = f
	}
	for _, id := range slices.Concat(all.before, all.after) {
		if id < 0 || id >= size {
			return frame{}, fmt.Errorf("post_processor: the id %d is not one of the %d of the tokenizer", id, size)
		}
	}
	if n := len(all.before) + len(all.after); n > maxAround {
		return frame{}, fmt.Errorf("post_processor: %d ids around a text, more than %d", n, maxAround)
	}
	return all, nil
}

// readTemplateProcessing reads a template: special tokens before and after the text, each of one or more ids, which need not be those of
// tokens of this name.
func readTemplateProcessing(raw json.RawMessage) (frame, error) {
	var t struct {
		Single []struct {
			SpecialToken *struct {
				ID string `json:"id"`
			}
			Sequence *struct {
				ID string `json:"id"`
			}
		} `json:"single"`
		SpecialTokens map[string]struct {
			IDs []int `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return frame{}, err
	}
	var f frame
	texts := 0
	for _, part := range t.Single {
		switch {
		case part.Sequence != nil && part.SpecialToken == nil && part.Sequence.ID == "A":
			texts++
		case part.SpecialToken != nil && part.Sequence == nil:
			token, ok := t.SpecialTokens[part.SpecialToken.ID]
			if !ok {
				return frame{}, fmt.Errorf("%q is not one of special_tokens", part.SpecialToken.ID)
			}
			if texts == 0 {
				f.before = append(f.before, token.IDs...)
			} else {
				f.after = append(f.after, token.IDs...)
			}
		default:
			texts = -1
		}
	}
	if texts != 1 {
		return frame{}, fmt.Errorf("only tokens around one text are implemented; %s", passIDs)
	}
	return f, nil
}

// readRoberta reads a RobertaProcessing or a BertProcessing: cls before the text and sep after the text.
func readRoberta(raw json.RawMessage) (frame, error) {
	var r struct {
		Type           string            `json:"type"`
		Sep            []json.RawMessage `json:"sep"` // a text and an id
		Cls            []json.RawMessage `json:"cls"`
		TrimOffsets    bool              `json:"trim_offsets"`     // of no consequence for ids, as the next
		AddPrefixSpace bool              `json:"add_prefix_space"` // its own is the pre-tokenizer's
	}
	if err := strict(raw, &r); err != nil {
		return frame{}, err
	}
	var f frame
	for _, token := range []struct {
		name string
		pair []json.RawMessage
		ids  *[]int
	}{{"cls", r.Cls, &f.before}, {"sep", r.Sep, &f.after}} {
		var id int
		if len(token.pair) != 2 || json.Unmarshal(token.pair[1], &id) != nil {
			return frame{}, fmt.Errorf("%s: want a text and an id", token.name)
		}
		*token.ids = []int{id}
	}
	return f, nil
}
