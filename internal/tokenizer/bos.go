package tokenizer

import (
	"encoding/json"
	"fmt"
)

// defaultBOS is Gemma's, for files that do not say what comes before a text.
const defaultBOS = "<bos>"

// template is a post_processor: which tokens go around a text.
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

// bos returns the id of the token that the post-processor puts before a text, else of <bos> where that
// is an added token, else -1. Anything but one token and the text, or the text alone, is refused:
// transformers would then give more ids than a BOS and ours.
func (f *file) bos() (int, error) {
	var t template
	if len(f.PostProcessor) > 0 {
		if err := json.Unmarshal(f.PostProcessor, &t); err != nil {
			return 0, fmt.Errorf("post_processor: %w", err)
		}
	}
	switch {
	case t.Type == "": // absent or null
	case t.Type != "TemplateProcessing":
		return 0, fmt.Errorf("post_processor: %q is not implemented; %s", t.Type, passIDs)
	case len(t.Single) == 1 && t.Single[0].Sequence != nil:
	case len(t.Single) == 2 && t.Single[0].SpecialToken != nil && t.Single[1].Sequence != nil:
		name := t.Single[0].SpecialToken.ID
		if ids := t.SpecialTokens[name].IDs; len(ids) != 1 || f.added(name) != ids[0] {
			return 0, fmt.Errorf("post_processor: %q is not one of the added tokens", name)
		}
		return f.added(name), nil
	default:
		return 0, fmt.Errorf("post_processor: only one token before a text is implemented; %s", passIDs)
	}
	return f.added(defaultBOS), nil
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
