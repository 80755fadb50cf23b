package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
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

// gemmaBOS begins a conversation where no file says what does: Gemma's template cannot do without.
const gemmaBOS = "<bos>"

// reader is the encoder of tokenizer.json: added tokens, normaliser, pre-tokenizer, merges.
type reader struct {
	normalize  func(string) string
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
	if err := f.unsupported(); err != nil {
		return nil, err
	}
	pieces, err := f.pieces()
	if err != nil {
		return nil, err
	}
	r := &reader{}
	if r.normalize, err = f.readNormalizer(); err != nil {
		return nil, err
	}
	steps, byteLevel, err := f.readPreTokenizer()
	if err != nil {
		return nil, err
	}
	r.steps = steps
	if r.bpe, err = f.Model.bpe(byteLevel); err != nil {
		return nil, err
	}
	added, err := r.addTokens(f.AddedTokens)
	if err != nil {
		return nil, err
	}
	bos, err := f.bos()
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{pieces: pieces, added: added, byteLevel: byteLevel, bos: bos, named: bos, unknown: -1, encoder: r}
	if name := f.Model.UnkToken; name != nil {
		if id, ok := f.Model.Vocab[*name]; ok {
			t.unknown = int(id)
		}
	}
	if gemma, ok := added[gemmaBOS]; ok && bos < 0 {
		t.named = gemma.ID
	}
	return t, nil
}

// addTokens fills both matchers and returns the tokens by their content. Two tokens that normalise to one
// text are an error: which of them `tokenizers` finds differs from run to run.
func (r *reader) addTokens(tokens []addedToken) (map[string]addedToken, error) {
	added := make(map[string]addedToken, len(tokens))
	for _, a := range tokens {
		added[a.Content] = a
		if !a.Normalized {
			r.raw.add(a.Content, a)
			continue
		}
		content := r.normalize(a.Content)
		if other, ok := r.normalized.tokens[content]; ok {
			return nil, fmt.Errorf("added_tokens: %q and %q are one text to the normalizer", other.Content, a.Content)
		}
		r.normalized.add(content, a)
	}
	return added, nil
}

// encode splits text at the added tokens as written, normalises what is between them, splits that at
// the normalised ones, cuts the rest into pieces and merges those.
func (r *reader) encode(text string) []int {
	e := &encoding{reader: r, ids: make([]int, 0, len(text)/3+1)} // some three characters make a token
	r.raw.split(text, func(plain string, atStart bool) {
		r.normalized.split(r.normalize(plain), func(plain string, first bool) {
			e.pieces(plain, r.steps, atStart && first)
		}, e.token)
	}, e.token)
	return e.ids
}

// An encoding is the work on one text.
type encoding struct {
	*reader
	work workspace
	ids  []int
}

func (e *encoding) token(id int) {
	e.ids = append(e.ids, id)
}

// pieces appends the ids of a text without added tokens.
func (e *encoding) pieces(text string, steps []step, atStart bool) {
	if len(steps) == 0 {
		e.ids = e.bpe.encode(text, e.ids, &e.work)
		return
	}
	text = steps[0].prepare(text, atStart)
	for len(text) > 0 {
		n := len(text)
		if split := steps[0].split; split != nil {
			n = split(text)
		}
		e.pieces(text[:n], steps[1:], atStart)
		text, atStart = text[n:], false
	}
}

// matches reports whether piece is an added token.
func (r *reader) matches(piece string) bool {
	return r.raw.has(piece) || r.normalized.has(r.normalize(piece))
}

// unsupported returns an error that names the first setting of f which would change ids in a way that
// this package does not implement.
func (f *file) unsupported() error {
	m := &f.Model
	for _, field := range []struct {
		name string
		ok   bool
		want string
	}{
		{"truncation", isNull(f.Truncation), "null"},
		{"padding", isNull(f.Padding), "null"},
		{"model.type", m.Type == "BPE", `"BPE"`},
		{"model.dropout", isNull(m.Dropout), "null"},
		{"model.continuing_subword_prefix", m.ContinuingSubwordPrefix == nil || *m.ContinuingSubwordPrefix == "", "null"},
		{"model.end_of_word_suffix", m.EndOfWordSuffix == nil || *m.EndOfWordSuffix == "", "null"},
	} {
		if !field.ok {
			return fmt.Errorf("%s: only %s is implemented; %s", field.name, field.want, passIDs)
		}
	}
	return nil
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
func (m *fileModel) bpe(byteLevel bool) (bpe, error) {
	b := bpe{vocab: m.Vocab, fuse: m.FuseUnk, whole: m.IgnoreMerges}
	var err error
	switch {
	case byteLevel:
		b.byteLevel = true
		b.bytes = m.byteLevelIDs()
	case m.ByteFallback:
		// Where one is missing, transformers falls back to the unknown token for some characters.
		b.bytes, err = m.fallbackIDs()
	case m.UnkToken == nil:
		err = fmt.Errorf("model.unk_token: null without byte_fallback is not implemented; %s", passIDs)
	default:
		id, ok := m.Vocab[*m.UnkToken]
		if !ok {
			err = fmt.Errorf("model.unk_token: %q is not in the vocabulary", *m.UnkToken)
		}
		b.unknown = id
	}
	if err != nil {
		return bpe{}, err
	}
	// Sixteen bytes a merge is below what real files have, so the map never grows.
	merges := mergeList{vocab: m.Vocab, merges: make(map[pair]merge, len(m.Merges)/16)}
	b.merges = merges.merges
	if err := merges.read(m.Merges); err != nil {
		return bpe{}, err
	}
	if byteLevel {
		b.vocab = m.spelled()
	}
	return b, nil
}

// byteLevelIDs returns the ids of the pieces of the 256 bytes, and noByte for a byte without a piece. The vocabulary of SmolLM2 lacks 21 bytes,
// which its training texts did not contain.
func (m *fileModel) byteLevelIDs() *[256]int32 {
	var ids [256]int32
	for i := range ids {
		id, ok := m.Vocab[string(byteChars[i])]
		if !ok {
			id = noByte
		}
		ids[i] = id
	}
	return &ids
}

// fallbackIDs returns the ids of the pieces <0x00> to <0xFF>, which encode a character without a piece. A missing piece is an error.
func (m *fileModel) fallbackIDs() (*[256]int32, error) {
	var ids [256]int32
	for i := range ids {
		name := fmt.Sprintf("<0x%02X>", i)
		id, ok := m.Vocab[name]
		if !ok {
			return nil, fmt.Errorf("model.byte_fallback: piece %s is missing; %s", name, passIDs)
		}
		ids[i] = id
	}
	return &ids, nil
}

// spelled returns the ids of a byte-level vocabulary by the bytes that its pieces spell, as whole words
// are looked up. Pieces that spell none are never found; nil where no words are.
func (m *fileModel) spelled() map[string]int32 {
	if !m.IgnoreMerges {
		return nil
	}
	vocab := make(map[string]int32, len(m.Vocab))
	for piece, id := range m.Vocab {
		if text, ok := bytesOf(piece); ok {
			vocab[text] = id
		}
	}
	return vocab
}
