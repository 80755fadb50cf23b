package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errMerges is about merges that have neither of the two spellings.
var errMerges = errors.New(`model.merges: neither a list of ["a", "b"] nor a list of "a b"`)

// A mergeList resolves the merges of a file, which stand in the order of their ranks, to ids.
//
// It walks the text of the list itself. Gemma's half a million pairs would cost encoding/json a second
// and a million strings that are thrown away once they are ids.
type mergeList struct {
	vocab  map[string]int32
	merges map[pair]merge
	rank   int32  // of the next merge; maxFile keeps it small
	joined []byte // reused
}

// read takes the merges from raw in either spelling: pairs, or strings with the two pieces on both
// sides of a space, which older files have. Pieces hold no space, for the normaliser leaves none. The
// decoder has already found raw to be valid JSON or empty.
func (l *mergeList) read(raw []byte) error {
	depth, parts := 0, make([][]byte, 0, 2)
	for at := 0; at < len(raw); at++ {
		switch c := raw[at]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',':
		case c == '[' && depth < 2:
			depth, parts = depth+1, parts[:0]
		case c == ']':
			if depth == 2 {
				if err := l.add(parts); err != nil {
					return err
				}
			}
			depth--
		case c == '"' && depth > 0:
			end := at + 1 + stringEnd(raw[at+1:])
			s, err := unquote(raw[at : end+1])
			if err != nil {
				return err
			}
			if depth == 1 && bytes.HasPrefix(s, []byte("#version")) { // the first line of a merges.txt
				at = end
				continue
			}
			if parts = append(parts, s); depth == 1 {
				if err := l.add(bytes.Split(s, []byte(" "))); err != nil {
					return err
				}
				parts = parts[:0]
			}
			at = end
		default:
			return errMerges
		}
	}
	if len(raw) == 0 {
		return errMerges // the field is missing
	}
	return nil
}

// add adds the merge of the next rank. Both pieces and their result are in the vocabulary. A repeated pair has its last rank, as in
// transformers.
func (l *mergeList) add(parts [][]byte) error {
	if len(parts) != 2 {
		return fmt.Errorf("model.merges: number %d has %d pieces, want 2", l.rank, len(parts))
	}
	l.joined = append(append(l.joined[:0], parts[0]...), parts[1]...)
	var ids [3]int32
	for i, piece := range [3][]byte{parts[0], parts[1], l.joined} {
		id, ok := l.vocab[string(piece)] // not copied: the compiler knows this form
		if !ok {
			return fmt.Errorf("model.merges: number %d needs %q, which is not in the vocabulary", l.rank, piece)
		}
		ids[i] = id
	}
	l.merges[pair{ids[0], ids[1]}] = merge{rank: l.rank, id: ids[2]}
	l.rank++
	return nil
}

// stringEnd returns the offset of the quote that ends a string; quoted starts after its first quote.
func stringEnd(quoted []byte) int {
	at := 0
	for quoted[at] != '"' {
		if quoted[at] == '\\' {
			at++
		}
		at++
	}
	return at
}

// unquote returns the text of a quoted string, as a part of it where nothing is escaped.
func unquote(quoted []byte) ([]byte, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], nil
	}
	var s string
	err := json.Unmarshal(quoted, &s)
	return []byte(s), err
}
