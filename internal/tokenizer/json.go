package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"
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

// What Gemma's file has in these two fields. Other settings are refused.
const (
	gemmaNormalizer = `{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}`
	// It never does anything, for the normaliser has left no space to split at.
	gemmaPreTokenizer = `{"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false}`
)

// reader is the encoder of tokenizer.json.
type reader struct {
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
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("data after the end of the JSON value")
	}
	if err := f.unsupported(); err != nil {
		return nil, err
	}
	pieces, err := f.pieces()
	if err != nil {
		return nil, err
	}
	r := &reader{}
	if r.bpe, err = f.Model.bpe(); err != nil {
		return nil, err
	}
	for _, a := range f.AddedTokens {
		if a.Normalized {
			r.normalized.add(normalize(a.Content), a.ID)
		} else {
			r.raw.add(a.Content, a.ID)
		}
	}
	bos, err := f.bos()
	if err != nil {
		return nil, err
	}
	return &Tokenizer{pieces: pieces, bos: bos, encoder: r}, nil
}

// encode splits text at the added tokens as written, normalises what is between them, splits that at
// the normalised ones and merges the rest.
func (r *reader) encode(text string) []int {
	// Three characters a token is what English has; more tokens only grow the slice.
	ids := make([]int, 0, len(text)/3+1)
	for more := true; more; {
		var plain string
		var token int
		plain, token, text, more = r.raw.next(text)
		ids = r.encodeNormalized(normalize(plain), ids)
		if more {
			ids = append(ids, token)
		}
	}
	return ids
}

// encodeNormalized appends the ids of a text without added tokens as written to ids.
func (r *reader) encodeNormalized(text string, ids []int) []int {
	for more := true; more; {
		var plain string
		var token int
		plain, token, text, more = r.normalized.next(text)
		ids = r.bpe.encode(plain, ids)
		if more {
			ids = append(ids, token)
		}
	}
	return ids
}

// matches reports whether piece is an added token.
func (r *reader) matches(piece string) bool {
	_, raw := r.raw.ids[piece]
	_, normalized := r.normalized.ids[normalize(piece)]
	return raw || normalized
}

// unsupported returns an error that names the first setting of f which would change ids in a way that
// this package does not implement.
func (f *file) unsupported() error {
	null := func(raw json.RawMessage) bool { return len(raw) == 0 || sameJSON(raw, "null") }
	m := &f.Model
	for _, field := range []struct {
		name string
		ok   bool
		want string
	}{
		{"truncation", null(f.Truncation), "null"},
		{"padding", null(f.Padding), "null"},
		{"normalizer", sameJSON(f.Normalizer, gemmaNormalizer), gemmaNormalizer},
		{"pre_tokenizer", null(f.PreTokenizer) || sameJSON(f.PreTokenizer, gemmaPreTokenizer), gemmaPreTokenizer},
		{"model.type", m.Type == "BPE", `"BPE"`},
		{"model.dropout", null(m.Dropout), "null"},
		{"model.continuing_subword_prefix", m.ContinuingSubwordPrefix == nil || *m.ContinuingSubwordPrefix == "", "null"},
		{"model.end_of_word_suffix", m.EndOfWordSuffix == nil || *m.EndOfWordSuffix == "", "null"},
		{"model.ignore_merges", !m.IgnoreMerges, "false"},
	} {
		if !field.ok {
			return fmt.Errorf("%s: only %s is implemented; %s", field.name, field.want, passIDs)
		}
	}
	for _, a := range f.AddedTokens {
		if err := a.unsupported(); err != nil {
			return err
		}
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

// pieces returns the pieces by id, those of the vocabulary and then the added tokens outside of it.
// Ids are 0, 1, 2 ... without a hole or a repetition; nothing else can be a row of an embedding, and
// transformers numbers added tokens anew when they leave a hole.
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
			return nil, fmt.Errorf("model.vocab: has %d pieces and none of them is number %d: want the ids 0 to %d, each once", len(vocab), id, len(vocab)-1)
		}
		if piece == "" || len(piece) > maxPiece {
			return nil, fmt.Errorf("model.vocab: piece %d has %d bytes, want 1 to %d", id, len(piece), maxPiece)
		}
	}
	seen := make(map[string]bool, len(f.AddedTokens))
	for _, a := range f.AddedTokens {
		if a.Content == "" || len(a.Content) > maxPiece {
			return nil, fmt.Errorf("added_tokens: token %d has %d bytes, want 1 to %d", a.ID, len(a.Content), maxPiece)
		}
		if seen[a.Content] {
			return nil, fmt.Errorf("added_tokens: %q is listed twice", a.Content)
		}
		seen[a.Content] = true
		id, inVocab := vocab[a.Content]
		want := int(id)
		if !inVocab {
			want = len(pieces)
			pieces = append(pieces, a.Content)
		}
		if a.ID != want {
			return nil, fmt.Errorf("added_tokens: %q has id %d, want %d", a.Content, a.ID, want)
		}
	}
	return pieces, nil
}

// bpe returns the model, its pieces and merges resolved to ids.
func (m *fileModel) bpe() (bpe, error) {
	b := bpe{vocab: m.Vocab, fuse: m.FuseUnk}
	if m.ByteFallback {
		b.bytes = new([256]int32)
		for i := range b.bytes {
			name := fmt.Sprintf("<0x%02X>", i)
			id, ok := b.vocab[name]
			if !ok {
				// transformers falls back to the unknown token for some characters then.
				return bpe{}, fmt.Errorf("model.byte_fallback: piece %s is missing; %s", name, passIDs)
			}
			b.bytes[i] = id
		}
	} else {
		if m.UnkToken == nil {
			return bpe{}, fmt.Errorf("model.unk_token: null without byte_fallback is not implemented; %s", passIDs)
		}
		id, ok := b.vocab[*m.UnkToken]
		if !ok {
			return bpe{}, fmt.Errorf("model.unk_token: %q is not in the vocabulary", *m.UnkToken)
		}
		b.unknown = id
	}
	// Sixteen bytes a merge is below what real files have, so the map never grows.
	merges := mergeList{vocab: b.vocab, merges: make(map[pair]merge, len(m.Merges)/16)}
	b.merges = merges.merges
	return b, merges.read(m.Merges)
}
