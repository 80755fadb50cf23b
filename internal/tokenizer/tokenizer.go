// Package tokenizer turns a prompt into the token ids that transformers would give the model.
//
// It reads tokenizer.json, with code of its own, and tokenizer.model, through go-sentencepiece. Of the
// former it reads byte-pair encodings, with these parts around them:
//
//   - normalisers: NFC, NFKC, Prepend, Replace, and a Sequence of them;
//   - pre-tokenizers: Split by a text or an expression, ByteLevel, Metaspace, Digits, Punctuation, and a
//     Sequence of them; package pattern says which expressions;
//   - vocabularies that lack the pieces of some characters or bytes: these become the unknown token, or
//     leave no trace where the file names none;
//   - post-processors that put ids before and after a text.
//
// Of tokenizer.model it knows Gemma's, and [FromGGUF] reads what a GGUF file has. A file that asks for
// anything more is refused by the name of the field: a tokenizer that is nearly right is worse than none,
// because every later tensor then differs and nothing says why. Whoever has another tokenizer passes ids
// instead, or has transformers make them.
//
// The measure is the `tokenizers` package, version 0.23, down to the age of its several tables of
// Unicode: Oniguruma's, the Rust standard library's, two crates', and the tables of its normalisation.
// fixtures/tokenizer/random_strings.py compares, and [Tokenizer.Unchecked] names the parts of a file that
// were not compared. Some classes of transformers 5 do not do what a tokenizer.json
// says: LlamaTokenizer puts the "▁" before the whole text only, not before what follows an added token,
// and not before a space; GPT2Tokenizer and Qwen2Tokenizer split by their own patterns. We do what the
// file says, and name the class unless it was found to do the same.
//
// Gemma's two files agree on all text but one kind. Control tokens written out in a text, such as
// "<bos>", are tokens to tokenizer.json and plain characters to SentencePiece. transformers reads the
// former, and so does [Open] when both are there.
//
// Files are untrusted: sizes are limited, ids are checked, expressions run within a budget of steps, and
// nothing here panics on them.
package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/files"
)

// The names under which a model directory holds its tokenizer, in the order of preference.
const (
	jsonFile  = "tokenizer.json"
	modelFile = "tokenizer.model"
)

const (
	// maxFile bounds what is read of a tokenizer file. The largest that Gemma has published is the
	// 33 MB tokenizer.json of its third generation.
	maxFile = 64 << 20
	// maxVocab bounds the number of pieces, four times Gemma's 262,144.
	maxVocab = 1 << 20
	// maxPiece bounds the bytes of one piece. Gemma's longest run of spaces has 93; without a
	// bound, one absurd piece makes looking for it at every place in a text quadratic.
	maxPiece = 1024
)

// spaceMark is how Gemma and SentencePiece files write a space.
const spaceMark = "▁"

// passIDs ends the message about a file that is sound but beyond this package.
const passIDs = "pass token ids with --tokens instead"

// encoder is one of the two readers.
type encoder interface {
	// encode returns the ids of text, which is valid UTF-8 and not empty.
	encode(text string) ([]int, error)
	// matches reports whether piece, written in a text, becomes the token of that name.
	matches(piece string) bool
}

// A Tokenizer is a vocabulary and a way to cut text into its pieces. It does not change after [Open]
// and may be used by several goroutines at once.
type Tokenizer struct {
	pieces    []string              // by id, as the file spells them: "▁the", "<0x0A>", "Ġthe"
	added     map[string]addedToken // tokens that stand for their own text; nil in a tokenizer.model
	byteLevel bool                  // the other pieces spell bytes
	frame     frame                 // what is put around a prompt
	bos       int                   // the first that is put before it; -1: none is
	named     int                   // the BOS that chat templates write; -1: none
	unknown   int                   // what becomes of characters without a piece; -1: none is named
	control   map[int]bool          // ids that stand for no text, of a tokenizer.model
	template  string                // the chat template of the checkpoint
	kinds     []string              // see [Tokenizer.Kinds]
	encoder   encoder
}

// Open reads the tokenizer of the model directory fsys: tokenizer.json where it exists, for that is
// what transformers reads, and tokenizer.model otherwise. A tokenizer.json that exists and is refused
// is an error even with a good tokenizer.model in the folder; falling back would change ids without a word. What
// tokenizer_config.json and chat_template.jinja say of conversations is kept for [Tokenizer.Chat].
func Open(fsys fs.FS) (*Tokenizer, error) {
	for _, reader := range []struct {
		name  string
		parse func([]byte) (*Tokenizer, error)
	}{{jsonFile, parseJSON}, {modelFile, parseModel}} {
		data, err := files.ReadFS(fsys, reader.name, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the tokenizer: %w", err)
		}
		t, err := reader.parse(data)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", reader.name, err)
		}
		if err := t.configure(fsys); err != nil {
			return nil, err
		}
		return t, nil
	}
	return nil, fmt.Errorf("no tokenizer: looked for %s, then %s; %s", jsonFile, modelFile, passIDs)
}

// Check is the error of [Open] for a file that is not to be read: no regular file, or too large. It reads nothing.
func Check(fsys fs.FS) error {
	for _, name := range []string{jsonFile, modelFile, configFile, templateFile, specialFile, addedFile, modelFileName} {
		if err := files.CheckFS(fsys, name, maxFile); err != nil {
			return fmt.Errorf("reading the tokenizer: %w", err)
		}
	}
	return nil
}

// Encode returns the ids of text, without a BOS before them. Empty text has no ids.
//
// Text that is not valid UTF-8 is an error that gives the place. The alternative, to replace the bad
// bytes, is done differently by every implementation, and a reference cannot be given such text.
func (t *Tokenizer) Encode(text string) ([]int, error) {
	if err := valid(text); err != nil {
		return nil, err
	}
	if text == "" {
		return nil, nil
	}
	return t.encoder.encode(text)
}

// Prompt returns the ids of text, with the ids that transformers puts around a prompt: a BOS in front, and with some files an EOS at the end.
func (t *Tokenizer) Prompt(text string) ([]int, error) {
	ids, err := t.Encode(text)
	if err != nil {
		return nil, err
	}
	return slices.Concat(t.frame.before, ids, t.frame.after), nil
}

// Kinds says what the file is made of, a line for each part; nil of a tokenizer.model, which is compared in another way.
func (t *Tokenizer) Kinds() []string {
	return t.kinds
}

// Splits describes the pre-tokenizer; "none" without one.
func (t *Tokenizer) Splits() string {
	for _, kind := range t.kinds {
		if name, ok := strings.CutPrefix(kind, "pre_tokenizer "); ok {
			return shortened(name)
		}
	}
	return "none"
}

// Unchecked names the parts of the file that were not compared with `tokenizers` on random texts; empty where all were.
func (t *Tokenizer) Unchecked() string {
	return unchecked(t.kinds)
}

// valid returns an error that gives the place of the first byte of text that belongs to no character.
func valid(text string) error {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if r == utf8.RuneError && size == 1 { // a written U+FFFD has three bytes
			return fmt.Errorf("encoding the prompt: not valid UTF-8 at byte %d (0x%02X)", at, text[at])
		}
		at += size
	}
	return nil
}

// BOS returns the id that transformers puts before a prompt; ok is false where it puts none, as with
// every Qwen.
func (t *Tokenizer) BOS() (id int, ok bool) {
	return t.bos, t.bos >= 0
}

// Special reports whether an id is marked as one that stands for no text of its own: "<bos>", "<pad>", a
// turn's marker. An id outside of the vocabulary is not.
func (t *Tokenizer) Special(id int) bool {
	if id < 0 || id >= len(t.pieces) {
		return false
	}
	if t.added == nil {
		return t.control[id]
	}
	token, ok := t.added[t.pieces[id]]
	return ok && token.ID == id && token.Special
}

// Unknown returns the id that stands for text without a piece; ok is false where the file names none, as
// with every Qwen. A tokenizer that falls back to bytes names one and does not give it.
func (t *Tokenizer) Unknown() (id int, ok bool) {
	return t.unknown, t.unknown >= 0
}

// Size returns the number of ids, added tokens included: every id that Encode gives is below it. A
// model's vocabulary may be larger; its last rows then have no text.
func (t *Tokenizer) Size() int {
	return len(t.pieces)
}

// Texts is [Tokenizer.Text] without what encoding needs, which is most of the memory of a large vocabulary.
func (t *Tokenizer) Texts() func(id int) string {
	texts := &Tokenizer{added: t.added, byteLevel: t.byteLevel, pieces: make([]string, len(t.pieces))}
	all := strings.Join(t.pieces, "")
	for id, piece := range t.pieces {
		texts.pieces[id], all = all[:len(piece)], all[len(piece):]
	}
	return texts.Text
}

// Text returns the piece of an id for display, with its spaces as spaces. A byte piece stays as the
// file spells it, "<0x0A>", because one byte of a character cannot be shown, and of a byte-level piece
// the bytes that make no whole character are written like it; an id outside of the vocabulary is
// "<id 5000?>". The result may hold line breaks and control characters: quote it before it reaches a
// terminal.
func (t *Tokenizer) Text(id int) string {
	if id < 0 || id >= len(t.pieces) {
		return fmt.Sprintf("<id %d?>", id)
	}
	piece := t.pieces[id]
	if !t.byteLevel {
		return strings.ReplaceAll(piece, spaceMark, " ")
	}
	if added, ok := t.added[piece]; ok && added.ID == id {
		return piece
	}
	if text, ok := bytesOf(piece); ok {
		return showBytes(text)
	}
	return piece
}
