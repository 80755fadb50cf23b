package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/tokenizer/pattern"
)

// file is a whole tokenizer.json. Unknown fields are errors: what a field that we do not know changes,
// we do not know either.
type file struct {
	Version       json.RawMessage `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"` // ids to text only: not looked at
	Model         fileModel       `json:"model"`
}

// fileModel is its byte-pair encoding.
type fileModel struct {
	Type                    string           `json:"type"`
	Dropout                 json.RawMessage  `json:"dropout"`
	UnkToken                *string          `json:"unk_token"`
	ContinuingSubwordPrefix *string          `json:"continuing_subword_prefix"`
	EndOfWordSuffix         *string          `json:"end_of_word_suffix"`
	FuseUnk                 bool             `json:"fuse_unk"`
	ByteFallback            bool             `json:"byte_fallback"`
	IgnoreMerges            bool             `json:"ignore_merges"`
	Vocab                   map[string]int32 `json:"vocab"`
	Merges                  json.RawMessage  `json:"merges"` // see mergeList
}

// gemmaBOS begins a conversation where no file says what does: Gemma's template cannot do without.
const gemmaBOS = "<bos>"

// reader is the encoder of tokenizer.json: added tokens, normaliser, pre-tokenizer, merges.
type reader struct {
	normalize  normalizers
	steps      []step
	bpe        bpe
	raw        matcher // added tokens as they are written
	normalized matcher // added tokens to be found in normalised text
}

// parseJSON reads a tokenizer.json.
func parseJSON(data []byte) (*Tokenizer, error) {
	// The decoder would replace bad bytes without a word.
	if !utf8.Valid(data) {
		return nil, errors.New("not valid UTF-8")
	}
	var f file
	if err := strict(data, &f); err != nil {
		return nil, err
	}
	if err := checkSpelling(data); err != nil {
		return nil, err
	}
	if err := f.unsupported(); err != nil {
		return nil, err
	}
	pieces, err := f.pieces()
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{pieces: pieces, bos: -1, named: -1, unknown: -1}
	r := &reader{}
	t.encoder = r
	var normalizer, preTokenizer, model string
	if r.normalize, normalizer, err = readNormalizer(f.Normalizer); err != nil {
		return nil, err
	}
	if r.steps, preTokenizer, t.byteLevel, err = readPreTokenizer(f.PreTokenizer); err != nil {
		return nil, err
	}
	// What is the start to it, `tokenizers` asks of places in the text before the normaliser, which may have taken the start away.
	if len(r.normalize) > 0 && len(r.steps) > 0 && r.steps[0].first {
		return nil, fmt.Errorf(`normalizer: not implemented together with a Metaspace with prepend_scheme "first"; %s`, passIDs)
	}
	if r.bpe, model, err = f.Model.bpe(t.byteLevel); err != nil {
		return nil, err
	}
	t.kinds = []string{"normalizer " + normalizer, "pre_tokenizer " + preTokenizer, "model " + model}
	if t.added, err = r.addTokens(f.AddedTokens); err != nil {
		return nil, err
	}
	if err := f.padToken(t.added); err != nil {
		return nil, err
	}
	if t.frame, err = readPostProcessor(f.PostProcessor, len(pieces)); err != nil {
		return nil, err
	}
	if len(t.frame.before) > 0 {
		t.bos = t.frame.before[0]
	}
	t.named = t.bos
	if name := f.Model.UnkToken; name != nil {
		if id, ok := f.Model.Vocab[*name]; ok {
			t.unknown = int(id)
		}
	}
	if gemma, ok := t.added[gemmaBOS]; ok && t.bos < 0 {
		t.named = gemma.ID
	}
	return t, nil
}

// addTokens fills both matchers and returns the tokens by their content. Two tokens with the same normalised
// text are an error, and so is a token whose normalised text is empty: `tokenizers` fails on both.
func (r *reader) addTokens(tokens []addedToken) (map[string]addedToken, error) {
	added := make(map[string]addedToken, len(tokens))
	budget := pattern.NewBudget(1 << 20)
	for _, a := range tokens {
		added[a.Content] = a
		if !a.Normalized {
			r.raw.add(a.Content, a)
			continue
		}
		content, err := r.normalize.apply(a.Content, budget)
		if err != nil || content == "" {
			return nil, errors.Join(fmt.Errorf("added_tokens: the normalizer leaves no text of %q", a.Content), err)
		}
		if other, ok := r.normalized.tokens[content]; ok {
			return nil, fmt.Errorf("added_tokens: the normalizer makes one text of %q and %q", other.Content, a.Content)
		}
		r.normalized.add(content, a)
	}
	return added, nil
}

// encode splits text at the added tokens as written, normalises the parts between them, splits the parts at the normalised added tokens, cuts
// the rest into pieces and merges the pieces.
func (r *reader) encode(text string) ([]int, error) {
	e := &encoding{reader: r, ids: make([]int, 0, len(text)/3+1), budget: pattern.NewBudget(len(text))} // some three characters make a token
	err := r.raw.split(text, func(plain string, atStart bool) {
		changed, err := r.normalize.apply(plain, e.budget)
		if err != nil {
			e.fail(err)
			return
		}
		err = r.normalized.split(changed, func(plain string, first bool) {
			e.pieces(plain, r.steps, atStart && first)
		}, e.token)
		e.fail(err)
	}, e.token)
	e.fail(err)
	return e.ids, e.err
}

// An encoding is the work on one text.
type encoding struct {
	*reader
	work   workspace
	budget *pattern.Budget
	ids    []int
	err    error // the first one
}

func (e *encoding) token(id int) {
	e.ids = append(e.ids, id)
}

func (e *encoding) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// pieces appends the ids of a text without added tokens.
func (e *encoding) pieces(text string, steps []step, atStart bool) {
	if e.err != nil || text == "" {
		return
	}
	if len(steps) == 0 {
		var err error
		if e.ids, err = e.bpe.encode(text, e.ids, &e.work); err != nil {
			e.fail(err)
		}
		return
	}
	text = steps[0].prepare(text, atStart)
	spans, err := steps[0].cut(text, e.budget)
	if err != nil {
		e.fail(err)
		return
	}
	for _, s := range spans {
		piece := text[s.start:s.end]
		if steps[0].spells {
			piece = spell(piece)
		}
		e.pieces(piece, steps[1:], atStart && s.start == 0)
	}
}

// matches reports whether piece is an added token.
func (r *reader) matches(piece string) bool {
	normalized, err := r.normalize.apply(piece, pattern.NewBudget(len(piece)))
	return r.raw.has(piece) || err == nil && r.normalized.has(normalized)
}

// unsupported returns an error that names the first setting of f that would change ids and is not implemented here.
func (f *file) unsupported() error {
	m := &f.Model
	for _, field := range []struct {
		name string
		ok   bool
		want string
	}{
		{"version", len(f.Version) == 0 || sameJSON(f.Version, `"1.0"`), `"1.0"`},
		// A plain call of transformers uses neither of the two, whatever they say.
		{"truncation", isNull(f.Truncation) || isObject(f.Truncation), "null or an object"},
		{"padding", isNull(f.Padding) || isObject(f.Padding), "null or an object"},
		{"model.type", m.Type == "BPE", `"BPE"`},
		{"model.dropout", isNull(m.Dropout) || sameJSON(m.Dropout, "0"), "null"},
		{"model.continuing_subword_prefix", m.ContinuingSubwordPrefix == nil || *m.ContinuingSubwordPrefix == "", "null"},
		{"model.end_of_word_suffix", m.EndOfWordSuffix == nil || *m.EndOfWordSuffix == "", "null"},
	} {
		if !field.ok {
			return fmt.Errorf("%s: only %s is implemented; %s", field.name, field.want, passIDs)
		}
	}
	return nil
}

// padToken returns an error where the token of padding is not an added token: transformers adds it, though a plain call does not pad.
func (f *file) padToken(added map[string]addedToken) error {
	var padding struct {
		Token *string `json:"pad_token"`
	}
	if err := json.Unmarshal(f.Padding, &padding); len(f.Padding) > 0 && err != nil {
		return fmt.Errorf("padding: %w", err)
	}
	if padding.Token == nil {
		return nil
	}
	if _, ok := added[*padding.Token]; !ok {
		return fmt.Errorf("padding: pad_token %.60q is not an added token, which is not implemented; %s", *padding.Token, passIDs)
	}
	return nil
}

// pieces returns the pieces by id, those of the vocabulary and then the added tokens outside of it. The ids of the vocabulary are 0, 1, 2
// ... without a hole or a repetition; nothing else can be a row of an embedding. The added tokens are numbered on from there in the order
// of the list: `tokenizers` takes no notice of the ids that the list gives them, and these may leave a hole.
func (f *file) pieces() ([]string, error) {
	vocab := f.Model.Vocab
	if len(vocab)+len(f.AddedTokens) > maxVocab {
		return nil, fmt.Errorf("model.vocab: more than %d pieces", maxVocab)
	}
	pieces := make([]string, len(vocab), len(vocab)+len(f.AddedTokens))
	taken := make([]bool, len(vocab))
	for piece, id := range vocab {
		if 0 <= id && int(id) < len(vocab) {
			pieces[id], taken[id] = piece, true
		}
	}
	for id, piece := range pieces {
		if !taken[id] {
			return nil, fmt.Errorf("model.vocab: has %d pieces and no piece with number %d: want the ids 0 to %d, each once; %s", len(vocab), id, len(vocab)-1, passIDs)
		}
		if piece == "" || len(piece) > maxPiece {
			return nil, fmt.Errorf("model.vocab: piece %d has %d bytes, want 1 to %d", id, len(piece), maxPiece)
		}
	}
	seen := make(map[string]bool, len(f.AddedTokens))
	for i := range f.AddedTokens {
		a := &f.AddedTokens[i]
		if a.Content == "" || len(a.Content) > maxPiece {
			return nil, fmt.Errorf("added_tokens: token %d has %d bytes, want 1 to %d", a.ID, len(a.Content), maxPiece)
		}
		if seen[a.Content] {
			return nil, fmt.Errorf("added_tokens: %q is listed twice", a.Content)
		}
		seen[a.Content] = true
		a.listed = a.ID
		if id, inVocab := vocab[a.Content]; inVocab {
			a.ID = int(id)
			continue
		}
		a.ID = len(pieces)
		pieces = append(pieces, a.Content)
	}
	return pieces, nil
}

// bpe returns the model, its pieces and merges resolved to ids, and its name in the words of kinds.txt.
func (m *fileModel) bpe(byteLevel bool) (b bpe, name string, err error) {
	b = bpe{vocab: m.Vocab, chars: make(map[rune]int32), fuse: m.FuseUnk, whole: m.IgnoreMerges, unknown: dropped}
	names := []string{"BPE"}
	lacks := ""
	for piece, id := range m.Vocab {
		if r, size := utf8.DecodeRuneInString(piece); size == len(piece) {
			b.chars[r] = id
		}
	}
	if byteLevel {
		for _, r := range byteChars {
			if _, ok := b.chars[r]; !ok {
				lacks = "without some bytes"
			}
		}
	}
	if m.ByteFallback {
		names = append(names, "byte_fallback")
		b.bytes = new([256]int32)
		for i := range b.bytes {
			id, ok := m.Vocab[fmt.Sprintf("<0x%02X>", i)]
			if !ok {
				id, lacks = dropped, "without some bytes"
			}
			b.bytes[i] = id
		}
	}
	if m.UnkToken != nil {
		id, ok := m.Vocab[*m.UnkToken]
		if !ok {
			id = missing // an error once there is an unknown character
		}
		b.unknown, b.unknownName = id, *m.UnkToken
		names = append(names, "unk_token")
	}
	for name, is := range map[string]bool{"fuse_unk": m.FuseUnk, "ignore_merges": m.IgnoreMerges, lacks: lacks != ""} {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	// Sixteen bytes a merge is below what real files have, so the map never grows.
	merges := mergeList{vocab: m.Vocab, merges: make(map[pair]merge, len(m.Merges)/16)}
	b.merges = merges.merges
	if err := merges.read(m.Merges); err != nil {
		return bpe{}, "", err
	}
	return b, strings.Join(names, ", "), nil
}

// isNull reports whether a field is absent or null.
func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || sameJSON(raw, "null")
}

// isObject reports whether a field is an object.
func isObject(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(raw, &fields) == nil
}

// typeOf returns the field type of an object, or "".
func typeOf(raw json.RawMessage) string {
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return ""
	}
	return head.Type
}

// strict decodes one JSON value and refuses fields that v does not have.
func strict(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("data after the end of the JSON value")
	}
	return nil
}

// sameJSON reports whether raw has the value that want spells, whatever the layout and the order of
// the keys.
func sameJSON(raw json.RawMessage, want string) bool {
	var a, b any
	if json.Unmarshal(raw, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return false
	}
	return reflect.DeepEqual(a, b)
}
