package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/tokenizer/pattern"
)

// llama.cpp's expressions for splitting a text, by their names in tokenizer.ggml.pre. Text without a match, such as the last of several spaces
// before a word, is a piece too.
const (
	ggmlWords    = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`
	ggmlShort    = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|`
	ggmlRest     = ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	ggmlLlama3   = ggmlShort + `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + ggmlRest
	ggmlQwen2    = ggmlShort + `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + ggmlRest
	ggmlQwen35   = ggmlShort + `[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	ggmlDeepSeek = `[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	ggmlTekken   = `[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// ggmlPre are the names that are known, with their expressions.
var ggmlPre = []struct {
	names       string
	expressions []string
}{
	{"gpt-2 phi-2 mpt olmo jais exaone4", []string{ggmlWords}},
	{"smollm starcoder refact command-r codeshell exaone minerva-7b", []string{`\p{N}`, ggmlWords}},
	{"falcon", []string{"[\\p{P}\\$\\+<=>\\^~\\|`]+", ggmlWords, `[0-9][0-9][0-9]`}},
	{"llama3 llama-v3 llama-bpe falcon3 dbrx smaug-bpe chatglm-bpe glm4", []string{ggmlLlama3}},
	{"qwen2 stablelm2 deepseek-r1-qwen megrez", []string{ggmlQwen2}},
	{"qwen35", []string{ggmlQwen35}},
	{"deepseek-v3", []string{`\p{N}{1,3}`, "[一-龥\u3040-ゟ゠-ヿ]+", ggmlDeepSeek}},
	{"tekken", []string{ggmlTekken}},
}

// ggmlWhole are the names of files whose merges are ignored where a whole word is in the vocabulary.
var ggmlWhole = strings.Fields("llama3 llama-v3 llama-bpe falcon3 tekken")

// The types of tokens in a GGUF file.
const (
	ggmlNormal  = 1
	ggmlUnknown = 2
	ggmlControl = 3
	ggmlUser    = 4
	ggmlByte    = 6
)

// ErrNoTokenizer is the error of [FromGGUF] for a file without one.
var ErrNoTokenizer = errors.New("the file has no tokenizer")

// FromGGUF reads the tokenizer of a GGUF file, as llama.cpp uses it: byte-level BPE ("gpt2") with one of the known names of expressions,
// or the merges that scores imply ("llama"). llama.cpp normalises no text. The error says what of it is not read.
func FromGGUF(g *gguf.File) (*Tokenizer, error) {
	kind := g.Text("tokenizer.ggml.model")
	if kind == "" {
		return nil, ErrNoTokenizer
	}
	pieces, err := g.Texts("tokenizer.ggml.tokens")
	if err != nil {
		return nil, err
	}
	types, err := g.Numbers("tokenizer.ggml.token_type")
	if err != nil {
		return nil, err
	}
	if len(pieces) == 0 || len(pieces) > maxVocab || len(types) != len(pieces) {
		return nil, fmt.Errorf("tokenizer.ggml.tokens: %d tokens with %d types", len(pieces), len(types))
	}
	t := &Tokenizer{pieces: pieces, bos: -1, named: -1, unknown: -1, added: map[string]addedToken{}}
	r := &reader{bpe: bpe{vocab: make(map[string]int32, len(pieces)), chars: map[rune]int32{}, unknown: dropped}}
	t.encoder = r
	for id, piece := range pieces {
		if _, twice := r.bpe.vocab[piece]; twice || piece == "" || len(piece) > maxPiece {
			return nil, fmt.Errorf("tokenizer.ggml.tokens: token %d, %.60q, is empty, too long, or there already", id, piece)
		}
		r.bpe.vocab[piece] = int32(id)
		if c, size := utf8.DecodeRuneInString(piece); size == len(piece) {
			r.bpe.chars[c] = int32(id)
		}
		switch types[id] {
		case ggmlControl, ggmlUser, ggmlUnknown:
			a := addedToken{ID: id, Content: piece, Special: types[id] == ggmlControl}
			t.added[piece] = a
			r.raw.add(piece, a)
		}
		if types[id] == ggmlUnknown {
			t.unknown = id
		}
	}
	if err := t.ggmlFrame(g); err != nil {
		return nil, err
	}
	switch kind {
	case "gpt2":
		pre := g.Text("tokenizer.ggml.pre")
		expressions, err := ggmlExpressions(pre)
		if err != nil {
			return nil, err
		}
		t.byteLevel = true
		t.kinds = []string{fmt.Sprintf("pre_tokenizer %q, which is %s", pre, visible(strings.Join(expressions, ", then ")))}
		return t, r.ggmlBPE(g, pre, expressions)
	case "llama":
		return t, r.ggmlScores(g, pieces, types)
	}
	return nil, fmt.Errorf("tokenizer.ggml.model %.60q is not read", kind)
}

// ggmlFrame reads which ids are put around a prompt. Where a file does not say, that is left to the model's family, and unknown here.
func (t *Tokenizer) ggmlFrame(g *gguf.File) error {
	for _, end := range []struct {
		name string
		ids  *[]int
	}{{"bos", &t.frame.before}, {"eos", &t.frame.after}} {
		if adds, _ := g.Bool("tokenizer.ggml.add_" + end.name + "_token"); !adds {
			continue
		}
		id, ok := g.Number("tokenizer.ggml." + end.name + "_token_id")
		if !ok || id < 0 || id >= float64(len(t.pieces)) {
			return fmt.Errorf("tokenizer.ggml.%s_token_id: no token of this id", end.name)
		}
		*end.ids = []int{int(id)}
	}
	if len(t.frame.before) > 0 {
		t.bos = t.frame.before[0]
	}
	return nil
}

// ggmlExpressions are those that the name of a file stands for.
func ggmlExpressions(pre string) ([]string, error) {
	for _, known := range ggmlPre {
		if slices.Contains(strings.Fields(known.names), pre) {
			return known.expressions, nil
		}
	}
	return nil, fmt.Errorf("tokenizer.ggml.pre %.60q is not read", pre)
}

// ggmlBPE reads the merges of a byte-level file.
func (r *reader) ggmlBPE(g *gguf.File, pre string, expressions []string) error {
	for _, e := range expressions {
		compiled, err := pattern.Compile(e)
		if err != nil {
			return err
		}
		r.steps = append(r.steps, step{find: compiled.Find})
	}
	r.steps = append(r.steps, step{spells: true})
	r.bpe.whole = slices.Contains(ggmlWhole, pre)
	merges, err := g.Texts("tokenizer.ggml.merges")
	if err != nil {
		return err
	}
	list := mergeList{vocab: r.bpe.vocab, merges: make(map[pair]merge, len(merges))}
	r.bpe.merges = list.merges
	for _, m := range merges {
		left, right, ok := strings.Cut(m, " ")
		if !ok {
			return fmt.Errorf("tokenizer.ggml.merges: number %d is not a pair", list.rank)
		}
		if err := list.add([][]byte{[]byte(left), []byte(right)}); err != nil {
			return fmt.Errorf("tokenizer.ggml.merges: %w", err)
		}
	}
	return nil
}

// ggmlScores makes the merges that the scores of a file imply: any two neighbours that make a token are joined, that of the highest score
// first.
func (r *reader) ggmlScores(g *gguf.File, pieces []string, types []float64) error {
	scores, err := g.Numbers("tokenizer.ggml.scores")
	if err != nil {
		return err
	}
	if len(scores) != len(pieces) {
		return fmt.Errorf("tokenizer.ggml.scores: %d of them, want %d", len(scores), len(pieces))
	}
	r.normalize = normalizers{func(text string, _ *pattern.Budget) (string, error) {
		return strings.ReplaceAll(text, " ", spaceMark), nil
	}}
	if prefix, ok := g.Bool("tokenizer.ggml.add_space_prefix"); prefix || !ok {
		r.normalize = append(r.normalize, func(text string, _ *pattern.Budget) (string, error) { return spaceMark + text, nil })
	}
	var normal []int
	r.bpe.bytes, r.bpe.merges = new([256]int32), map[pair]merge{}
	for i := range r.bpe.bytes {
		r.bpe.bytes[i] = dropped
	}
	for id, piece := range pieces {
		switch types[id] {
		case ggmlNormal:
			normal = append(normal, id)
		case ggmlByte:
			b, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(piece, "<0x"), ">"), 16, 8)
			if err != nil || piece != fmt.Sprintf("<0x%02X>", b) {
				return fmt.Errorf("tokenizer.ggml.tokens: the byte %.60q", piece)
			}
			r.bpe.bytes[b] = int32(id)
		case ggmlUnknown:
			r.bpe.unknown = int32(id)
		}
	}
	slices.SortStableFunc(normal, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	rank := int32(0)
	for i, id := range normal {
		if i > 0 && scores[id] != scores[normal[i-1]] {
			rank++
		}
		piece := pieces[id]
		for at, c := range piece {
			if _, ok := r.bpe.chars[c]; !ok { // it is joined before its bytes are looked for
				return fmt.Errorf("tokenizer.ggml.tokens: %.60q has a character that is not a token, which is not read", piece)
			}
			left, ok1 := r.bpe.vocab[piece[:at]]
			right, ok2 := r.bpe.vocab[piece[at:]]
			if at > 0 && ok1 && ok2 && types[left] == ggmlNormal && types[right] == ggmlNormal {
				r.bpe.merges[pair{left, right}] = merge{rank, int32(id)}
			}
		}
	}
	return nil
}
