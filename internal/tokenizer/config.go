package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/internal/files"
)

// Further files of a model directory with the text around a prompt and the special tokens. All are optional.
const (
	configFile   = "tokenizer_config.json"
	templateFile = "chat_template.jinja"     // newer checkpoints have the template outside of the config
	specialFile  = "special_tokens_map.json" // older ones have special tokens again
	addedFile    = "added_tokens.json"       // and the ids of added tokens
)

// A config is the relevant part of a tokenizer_config.json. It has many more fields; transformers ignores two of them, add_bos_token and
// add_eos_token, if there is a tokenizer.json.
type config struct {
	Class    string                `json:"tokenizer_class"`
	BOS      json.RawMessage       `json:"bos_token"`
	EOS      json.RawMessage       `json:"eos_token"`
	Unknown  json.RawMessage       `json:"unk_token"`
	Pad      json.RawMessage       `json:"pad_token"`
	Sep      json.RawMessage       `json:"sep_token"`
	Cls      json.RawMessage       `json:"cls_token"`
	Mask     json.RawMessage       `json:"mask_token"`
	More     json.RawMessage       `json:"additional_special_tokens"` // a list
	Extra    json.RawMessage       `json:"extra_special_tokens"`      // a list, or an object with names
	Own      json.RawMessage       `json:"model_specific_special_tokens"`
	Template json.RawMessage       `json:"chat_template"`
	Added    map[string]addedToken `json:"added_tokens_decoder"` // by id; without the field id
	Splits   bool                  `json:"split_special_tokens"`
	Regex    bool                  `json:"fix_mistral_regex"`
	Files    []string              `json:"fast_tokenizer_files"`

	PrefixSpace bool `json:"add_prefix_space"` // some classes of transformers heed it

	others []json.RawMessage // tokens of further fields whose name ends in _token, such as image_token
}

// read reads a tokenizer_config.json or a special_tokens_map.json.
func (c *config) read(data []byte) error {
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(data, c), json.Unmarshal(data, &all)); err != nil {
		return err
	}
	for name, value := range all {
		if token, err := tokenName(value); err == nil && token != "" && strings.HasSuffix(name, "_token") && name != "bos_token" {
			c.others = append(c.others, value)
		}
	}
	return nil
}

// check returns an error that names a setting under which transformers departs from tokenizer.json.
func (c *config) check(size int) error {
	switch {
	case c.Splits:
		return fmt.Errorf("split_special_tokens: only false is implemented; %s", passIDs)
	case c.Regex && size > 100_000: // transformers leaves a smaller one as it is
		return fmt.Errorf("fix_mistral_regex: only false is implemented; %s", passIDs)
	}
	for _, name := range c.Files {
		if name != jsonFile {
			return fmt.Errorf("fast_tokenizer_files: %.60q, of another version of transformers, is not implemented; %s", name, passIDs)
		}
	}
	return nil
}

// configure reads these files, where they exist, into t.
func (t *Tokenizer) configure(fsys fs.FS) error {
	if err := t.checkOlder(fsys); err != nil {
		return err
	}
	var c config
	data, err := files.ReadFS(fsys, configFile, maxFile)
	if err == nil {
		if err := c.read(data); err != nil {
			return fmt.Errorf("reading %s: %w", configFile, err)
		}
		if err := t.apply(&c); err != nil {
			return fmt.Errorf("reading %s: %w", configFile, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the tokenizer: %w", err)
	}
	if err := t.noteClass(fsys, &c); err != nil {
		return err
	}
	data, err = files.ReadFS(fsys, templateFile, maxFile)
	switch {
	case err == nil:
		t.template = string(data)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the tokenizer: %w", err)
	}
	return nil
}

// apply takes from c the chat template and its BOS. Only the post-processor of tokenizer.json decides about a BOS before a plain prompt.
func (t *Tokenizer) apply(c *config) error {
	if err := c.check(t.Size()); err != nil && t.added != nil {
		return err
	}
	if err := t.sameTokens(c.Added); err != nil {
		return fmt.Errorf("added_tokens_decoder: %w", err)
	}
	if err := t.readTemplate(c.Template); err != nil {
		return err
	}
	others := *c
	others.BOS = nil // see below
	if err := t.hasTokens(&others); err != nil {
		return err
	}
	if len(c.BOS) == 0 || t.added == nil { // tokenizer.model names its BOS itself
		return nil
	}
	name, err := tokenName(c.BOS)
	if err != nil {
		return fmt.Errorf("bos_token: %w", err)
	}
	t.named = -1
	if name == "" {
		return nil
	}
	token, ok := t.added[name]
	if !ok {
		return fmt.Errorf("bos_token: %q is not an added token of %s", name, jsonFile)
	}
	t.named = token.ID
	return nil
}

// checkOlder returns an error where one of the older files has a token that is not an added token of tokenizer.json.
func (t *Tokenizer) checkOlder(fsys fs.FS) error {
	for _, name := range []string{specialFile, addedFile} {
		data, err := files.ReadFS(fsys, name, maxFile)
		if errors.Is(err, fs.ErrNotExist) || t.added == nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the tokenizer: %w", err)
		}
		var c config
		if name == specialFile {
			err = c.read(data)
		} else {
			var ids map[string]json.RawMessage
			if err = json.Unmarshal(data, &ids); err == nil {
				c.Extra, err = json.Marshal(slices.Sorted(maps.Keys(ids)))
			}
		}
		if err == nil {
			err = t.hasTokens(&c)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return nil
}

// hasTokens returns an error where the config names a token that is not an added token of tokenizer.json: transformers adds it, and then finds
// it in any text.
func (t *Tokenizer) hasTokens(c *config) error {
	if t.added == nil {
		return nil
	}
	list := append([]json.RawMessage{c.BOS, c.EOS, c.Unknown, c.Pad, c.Sep, c.Cls, c.Mask}, c.others...)
	for _, field := range []json.RawMessage{c.More, c.Extra, c.Own} {
		var more []json.RawMessage
		var named map[string]json.RawMessage
		if isNull(field) {
			continue
		}
		if json.Unmarshal(field, &more) != nil && json.Unmarshal(field, &named) != nil {
			return errors.New("special tokens that are neither a list nor an object")
		}
		list = slices.AppendSeq(append(list, more...), maps.Values(named))
	}
	for _, raw := range list {
		name, err := tokenName(raw)
		if err != nil {
			return fmt.Errorf("a special token: %w", err)
		}
		if _, ok := t.added[name]; !ok && name != "" {
			return fmt.Errorf("the special token %.60q is not an added token of %s; %s", name, jsonFile, passIDs)
		}
	}
	return nil
}

// sameTokens returns an error where the config has an added token that tokenizer.json has not, or has
// otherwise: transformers adds it, and ids change.
func (t *Tokenizer) sameTokens(tokens map[string]addedToken) error {
	if t.added == nil {
		return nil // tokenizer.model knows no added tokens
	}
	for key, a := range tokens {
		b, ok := t.added[a.Content]
		if id, err := strconv.Atoi(key); err != nil || !ok || b.ID != id && b.listed != id {
			return fmt.Errorf("%q with the id %s is not an added token of %s", a.Content, key, jsonFile)
		}
		// Of a special token transformers keeps the flag normalized that it has in tokenizer.json.
		if a.SingleWord != b.SingleWord || a.LStrip != b.LStrip || a.RStrip != b.RStrip || a.Normalized != b.Normalized && !b.Special {
			return fmt.Errorf("%q has other flags than in %s", a.Content, jsonFile)
		}
	}
	return nil
}

// readTemplate takes the chat template: a text, or the text called "default" in a list.
func (t *Tokenizer) readTemplate(raw json.RawMessage) error {
	if isNull(raw) || json.Unmarshal(raw, &t.template) == nil {
		return nil
	}
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return errors.New("chat_template: neither a text nor a list of texts with names")
	}
	for _, entry := range list {
		if entry.Name == "default" {
			t.template = entry.Template
		}
	}
	return nil
}

// tokenName returns the text of a token that is given as such or as an object with the field content; ""
// where the field is absent or null.
func tokenName(raw json.RawMessage) (string, error) {
	if isNull(raw) {
		return "", nil
	}
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return name, nil
	}
	var token struct {
		Content *string `json:"content"`
	}
	if json.Unmarshal(raw, &token) != nil || token.Content == nil {
		return "", errors.New("neither a text nor an added token")
	}
	return *token.Content, nil
}
