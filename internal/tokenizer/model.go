package tokenizer

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	sentencepiece "github.com/eliben/go-sentencepiece"
	"google.golang.org/protobuf/encoding/protowire"
)

// maxSymbols bounds the bytes of all user-defined symbols together, for go-sentencepiece keeps a map
// for each of their characters. Gemma's some 6,400 symbols have about 90 kB.
const maxSymbols = 256 << 10

// The types of pieces in a SentencePiece model.
const (
	normalPiece = iota + 1
	unknownPiece
	controlPiece
	userDefinedPiece
	unusedPiece
	bytePiece
)

// modelBPE is the number of byte-pair encoding among the types of models.
const modelBPE = 2

// A spec has the statements of a tokenizer.model that go-sentencepiece hides (pieces, their types, the BOS), ignores (escaped spaces, a map of
// characters) or fails on (a normaliser without fields makes it panic). Fields have the names and defaults of SentencePiece's
// sentencepiece_model.proto.
type spec struct {
	pieces []string
	types  []uint64

	modelType               uint64
	treatWhitespaceAsSuffix bool
	byteFallback            bool
	bosID                   int32

	addDummyPrefix         bool
	removeExtraWhitespaces bool
	escapeWhitespaces      bool
	charsmap               bool
}

// processor is the encoder of tokenizer.model.
type processor struct {
	proc    *sentencepiece.Processor
	symbols map[string]bool // user-defined: tokens wherever they are written
}

// parseModel reads a tokenizer.model.
func parseModel(data []byte) (*Tokenizer, error) {
	s := &spec{modelType: 1, bosID: 1, addDummyPrefix: true, removeExtraWhitespaces: true, escapeWhitespaces: true}
	if err := s.read(data); err != nil {
		return nil, err
	}
	if err := s.unsupported(); err != nil {
		return nil, err
	}
	symbols, err := s.check()
	if err != nil {
		return nil, err
	}
	proc, err := sentencepiece.NewProcessor(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{pieces: s.pieces, bos: -1, named: -1, unknown: -1, control: map[int]bool{}, encoder: &processor{proc: proc, symbols: symbols}}
	for id, kind := range s.types {
		switch kind {
		case unknownPiece:
			t.unknown = id
		case controlPiece:
			t.control[id] = true
		}
	}
	if id := int(s.bosID); 0 <= id && id < len(s.pieces) && s.types[id] == controlPiece {
		t.bos, t.named, t.frame.before = id, id, []int{id}
	}
	return t, nil
}

func (p *processor) encode(text string) ([]int, error) {
	tokens := p.proc.Encode(text)
	ids := make([]int, len(tokens))
	for i, token := range tokens {
		ids[i] = token.ID
	}
	return ids, nil
}

func (p *processor) matches(piece string) bool {
	return p.symbols[piece]
}

// unsupported returns an error that names the first setting that neither we nor go-sentencepiece
// implement.
func (s *spec) unsupported() error {
	for _, field := range []struct {
		name string
		ok   bool
		want string
	}{
		{"trainer_spec.model_type", s.modelType == modelBPE, "BPE"},
		{"trainer_spec.byte_fallback", s.byteFallback, "true"},
		{"trainer_spec.treat_whitespace_as_suffix", !s.treatWhitespaceAsSuffix, "false"},
		{"normalizer_spec.add_dummy_prefix", !s.addDummyPrefix, "false"},
		{"normalizer_spec.remove_extra_whitespaces", !s.removeExtraWhitespaces, "false"},
		{"normalizer_spec.escape_whitespaces", s.escapeWhitespaces, "true"},
		{"normalizer_spec.precompiled_charsmap", !s.charsmap, "none"},
	} {
		if !field.ok {
			return fmt.Errorf("%s: only %s is implemented; %s", field.name, field.want, passIDs)
		}
	}
	return nil
}

// check returns the user-defined symbols, or what is wrong with the pieces.
func (s *spec) check() (map[string]bool, error) {
	symbols, symbolBytes := make(map[string]bool), 0
	first := make(map[string]int, len(s.pieces))
	for id, piece := range s.pieces {
		if piece == "" || len(piece) > maxPiece || !utf8.ValidString(piece) {
			return nil, fmt.Errorf("piece %d has %d bytes or is not valid UTF-8, want 1 to %d", id, len(piece), maxPiece)
		}
		if other, ok := first[piece]; ok {
			return nil, fmt.Errorf("pieces %d and %d are both %q", other, id, piece)
		}
		first[piece] = id
		switch s.types[id] {
		case normalPiece, unknownPiece, controlPiece, bytePiece:
		case userDefinedPiece:
			symbols[piece] = true
			symbolBytes += len(piece)
		case unusedPiece:
			// SentencePiece takes such a piece apart again after the merges; go-sentencepiece does not.
			return nil, fmt.Errorf("piece %d, %q, is marked unused, which is not implemented; %s", id, piece, passIDs)
		default:
			return nil, fmt.Errorf("piece %d, %q, has the unknown type %d", id, piece, s.types[id])
		}
	}
	if symbolBytes > maxSymbols {
		return nil, fmt.Errorf("user-defined symbols have %d bytes, more than %d", symbolBytes, maxSymbols)
	}
	return symbols, nil
}

// The tags of the fields that matter: field number and encoding. A field with our number and another encoding is skipped, as in protobuf.
const (
	varint, text = uint64(protowire.VarintType), uint64(protowire.BytesType)

	modelPieces     = 1<<3 | text
	modelTrainer    = 2<<3 | text
	modelNormalizer = 3<<3 | text

	pieceText = 1<<3 | text
	pieceType = 3<<3 | varint

	trainerModelType        = 3<<3 | varint
	trainerWhitespaceSuffix = 24<<3 | varint
	trainerByteFallback     = 35<<3 | varint
	trainerBOS              = 41<<3 | varint

	normalizerCharsmap               = 2<<3 | text
	normalizerAddDummyPrefix         = 3<<3 | varint
	normalizerRemoveExtraWhitespaces = 4<<3 | varint
	normalizerEscapeWhitespaces      = 5<<3 | varint
)

// read takes the fields from a model. A part may come in several pieces, and of a repeated field the
// last one counts.
func (s *spec) read(data []byte) error {
	return fields(data, func(f field) error {
		switch f.tag {
		case modelPieces:
			return s.readPiece(f.bytes)
		case modelTrainer:
			return s.readTrainer(f.bytes)
		case modelNormalizer:
			return s.readNormalizer(f.bytes)
		}
		return nil
	})
}

func (s *spec) readPiece(data []byte) error {
	if len(s.pieces) == maxVocab { // here and not later: an empty piece takes two bytes of a file
		return fmt.Errorf("more than %d pieces", maxVocab)
	}
	piece, kind := "", uint64(normalPiece)
	err := fields(data, func(f field) error {
		switch f.tag {
		case pieceText:
			piece = string(f.bytes)
		case pieceType:
			kind = f.varint
		}
		return nil
	})
	s.pieces, s.types = append(s.pieces, piece), append(s.types, kind)
	return err
}

func (s *spec) readTrainer(data []byte) error {
	return fields(data, func(f field) error {
		switch f.tag {
		case trainerModelType:
			s.modelType = f.varint
		case trainerWhitespaceSuffix:
			s.treatWhitespaceAsSuffix = f.varint != 0
		case trainerByteFallback:
			s.byteFallback = f.varint != 0
		case trainerBOS:
			s.bosID = int32(f.varint) // negative: none
		}
		return nil
	})
}

func (s *spec) readNormalizer(data []byte) error {
	return fields(data, func(f field) error {
		switch f.tag {
		case normalizerCharsmap:
			s.charsmap = len(f.bytes) > 0
		case normalizerAddDummyPrefix:
			s.addDummyPrefix = f.varint != 0
		case normalizerRemoveExtraWhitespaces:
			s.removeExtraWhitespaces = f.varint != 0
		case normalizerEscapeWhitespaces:
			s.escapeWhitespaces = f.varint != 0
		}
		return nil
	})
}

// A field of a protobuf message. Fields of other encodings than these two have no value here.
type field struct {
	tag    uint64
	varint uint64
	bytes  []byte
}

// fields calls visit for every field of a message, in order. A field's bytes are a part of data.
func fields(data []byte, visit func(field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("not a SentencePiece model: %w", protowire.ParseError(n))
		}
		data = data[n:]
		f := field{tag: protowire.EncodeTag(number, kind)}
		switch kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return fmt.Errorf("not a SentencePiece model: %w", protowire.ParseError(n))
		}
		data = data[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}
