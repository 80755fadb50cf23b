package session

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/internal/files"
)

// lastFile has what the last comparison found, in a folder of traces.
const lastFile = "last-compare.json"

// maxLast bounds the file.
const maxLast = 1 << 16

// last is what the next comparison of the same input is held against.
type last struct {
	Input string `json:"input"` // a digest of what was compared
	Scope string `json:"scope"` // how much of it, in words
	Exit  int    `json:"exit"`
	First string `json:"first,omitempty"` // key of the first divergence
}

// Since says how the first divergence moved since the last comparison of the same input, and keeps this one for the next; empty
// where there was none, and where there is nothing to tell. dir is a folder of traces: one in which nothing was captured yet is left
// as it is. The input is the model, the token ids,
// the dtype and the number of passes.
//
// It says what the two comparisons found and no more: that an entry matches now is said only where this one compared it.
func Since(dir string, r *compare.Result) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, SettingsFile)); err != nil || r.AB || len(r.Inputs) == 0 {
		return "", nil // nothing is kept here, or nothing says of which input it would be
	}
	now, err := found(r)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, lastFile)
	before, err := readLast(path)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(now)
	if err != nil {
		return "", err
	}
	if err := WriteWhole(path, append(text, '\n')); err != nil {
		return "", fmt.Errorf("keeping what was found: %w", err)
	}
	if before.Input != now.Input {
		return "", nil
	}
	return moved(before, now, r), nil
}

// found is what is kept of a comparison that has inputs.
func found(r *compare.Result) (last, error) {
	ids := r.Inputs[0].Reference
	if len(ids) == 0 {
		ids = r.Inputs[0].Local
	}
	text, err := json.Marshal([]any{r.Alone, cmp.Or(r.Reference.Model, r.Local.Model), r.Local.DType, r.Coverage.Passes, ids})
	if err != nil {
		return last{}, err
	}
	sum := sha256.Sum256(text)
	now := last{Input: hex.EncodeToString(sum[:]), Scope: scopeWords(r), Exit: r.ExitCode()}
	if r.Divergence != nil {
		now.First = r.Divergence.Row.Key()
	}
	return now, nil
}

// readLast reads the file; one that is not there, or that no version of this program wrote, is no comparison.
func readLast(path string) (last, error) {
	var l last
	data, err := files.Read(path, maxLast)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return l, nil
	case err != nil:
		return l, err
	}
	if json.NewDecoder(bytes.NewReader(data)).Decode(&l) != nil {
		return last{}, nil
	}
	return l, nil
}

// moved puts the difference of two comparisons into words.
func moved(before, now last, r *compare.Result) string {
	text := ""
	switch {
	case before.First == now.First && now.First == "":
		return ""
	case before.First == now.First:
		return "still " + now.First
	case before.First == "" && before.Exit == 0:
		text = "was no divergence, now " + now.First
	case before.First == "":
		text = "was in none of the entries compared, now " + now.First
	case now.First == "" && now.Exit == 0:
		text = fmt.Sprintf("was %s, now none: everything compared matches", before.First)
	case now.First == "":
		text = fmt.Sprintf("was %s, now in none of the entries compared", before.First)
	default:
		text = fmt.Sprintf("was %s, now %s", before.First, now.First)
	}
	if before.First != "" {
		at := slices.IndexFunc(r.Rows, func(row compare.Row) bool { return row.Key() == before.First })
		switch {
		case at < 0 && now.First != "":
			text += " (not compared this time: " + before.First + ")"
		case at < 0:
			text += ", but " + before.First + " was not compared this time"
		case now.First != "" && r.Rows[at].Verdict == compare.Match:
			text += " (" + before.First + " matches)"
		}
	}
	if before.Scope != now.Scope {
		text += fmt.Sprintf("; then %s, now %s", before.Scope, now.Scope)
	}
	return text
}

// scopeWords is how much was compared.
func scopeWords(r *compare.Result) string {
	level := 3
	narrow := ""
	for _, s := range []capture.Scope{r.Local.Scope, r.Reference.Scope, r.Typed} {
		if s.Level > 0 {
			level = min(level, s.Level)
		}
		if len(s.Layers)+len(s.Passes)+len(s.Positions)+len(s.Tensors) > 0 {
			narrow = ", a part of it"
		}
	}
	return fmt.Sprintf("level %d%s", level, narrow)
}
