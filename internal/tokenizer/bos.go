package tokenizer

import (
	"encoding/json"
	"fmt"
)

// template is a post_processor that says which tokens go around a text.
type template struct {
	Type   string `json:"type"`
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

// bos returns the id of the token that the post-processor puts before a text, -1 for none.
func (f *file) bos() (int, error) {
	parts := []json.RawMessage{f.PostProcessor}
	if typeOf(f.PostProcessor) == "Sequence" {
		var sequence struct {
			Type       string            `json:"type"`
			Processors []json.RawMessage `json:"processors"`
		}
		if err := strict(f.PostProcessor, &sequence); err != nil {
			return 0, fmt.Errorf("post_processor: %w", err)
		}
		parts = sequence.Processors
	}
	bos, templates := -1, 0
	for _, part := range parts {
		switch kind := typeOf(part); {
		case isNull(part):
		case kind == "ByteLevel":
			// It changes the places of tokens in the text only.
			if _, err := readByteLevel(part); err != nil {
				return 0, fmt.Errorf("post_processor: ByteLevel: %w", err)
			}
		case kind == "TemplateProcessing" && templates == 0:
			templates++
			var err error
			if bos, err = f.templateBOS(part); err != nil {
				return 0, fmt.Errorf("post_processor: %w", err)
			}
		default:
			return 0, fmt.Errorf("post_processor: %q is not implemented; %s", kind, passIDs)
		}
	}
	return bos, nil
}

// templateBOS returns the id of the token that a template puts before a text, -1 for none. Anything but
// one token and the text, or the text alone, is refused: transformers would then give more ids than a
// BOS and ours.
func (f *file) templateBOS(raw json.RawMessage) (int, error) {
	var t template
	if err := json.Unmarshal(raw, &t); err != nil {
		return 0, err
	}
	switch {
	case len(t.Single) == 1 && t.Single[0].Sequence != nil:
		return -1, nil
	case len(t.Single) == 2 && t.Single[0].SpecialToken != nil && t.Single[1].Sequence != nil:
		name := t.Single[0].SpecialToken.ID
		if ids := t.SpecialTokens[name].IDs; len(ids) != 1 || f.added(name) != ids[0] {
			return 0, fmt.Errorf("%q is not one of the added tokens", name)
		}
		return f.added(name), nil
	}
	return 0, fmt.Errorf("only one token before a text is implemented; %s", passIDs)
}

// added returns the id of an added token, -1 if there is none of that content.
func (f *file) added(content string) int {
	for _, a := range f.AddedTokens {
		if a.Content == content {
			return a.ID
		}
	}
	return -1
}
