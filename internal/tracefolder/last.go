package tracefolder

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
	"github.com/tracediff/tracediff/internal/settings"
)

// lastFile has what the last comparisons found, in a folder of traces.
const lastFile = "last-compare.json"

// maxLast bounds the size of the file, and maxKept the number of comparisons in it: one per pair of sides and
// input.
const (
	maxLast = 1 << 16
	maxKept = 16
)

// lasts are the last comparisons, of each pair of sides and each input one, the newest first.
type lasts struct {
	Compared []last `json:"compared"`
}

// last is what the next comparison of the same sides and the same input is held against.
type last struct {
	Sides string `json:"sides"` // a digest of what was compared: the local side and the reference
	Input string `json:"input"` // a digest of the model, the token ids, the dtype and the number of passes
	Scope string `json:"scope"` // how much of it, in words
	Exit  int    `json:"exit"`
	First string `json:"first,omitempty"` // key of the first divergence
}

// Since describes how the first divergence moved since the last comparison of the same sides on the same input, and
// stores the new divergence for the next call. It returns "" for a first comparison, and if nothing changed. dir is
// a folder of traces. A folder without a capture is left unchanged.
//
// The sentence claims only facts of the two comparisons: an entry matches now only if the new comparison compared
// it.
func Since(dir string, local settings.Source, r *compare.Result) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, settings.SettingsFile)); err != nil || r.AB || len(r.Inputs) == 0 {
		return "", nil // nothing is kept here, or its input is unknown
	}
	now, err := found(local, r)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, lastFile)
	kept, err := readLast(path)
	if err != nil {
		return "", err
	}
	before := slices.IndexFunc(kept.Compared, func(l last) bool { return l.Sides == now.Sides && l.Input == now.Input })
	text := ""
	if before >= 0 {
		text = moved(kept.Compared[before], now, r)
		kept.Compared = slices.Delete(kept.Compared, before, before+1)
	}
	kept.Compared = slices.Insert(kept.Compared, 0, now)
	if err := kept.write(path); err != nil {
		return "", fmt.Errorf("keeping what was found: %w", err)
	}
	return text, nil
}

// found is what is kept of a comparison that has inputs.
func found(local settings.Source, r *compare.Result) (last, error) {
	ids := r.Inputs[0].Reference
	if len(ids) == 0 {
		ids = r.Inputs[0].Local
	}
	if local.Kind == "" {
		local.Kind = settings.KindGo
	}
	if local.Kind == settings.KindFile {
		local.Text = rooted(local.Text)
	}
	now := last{Scope: scopeWords(r), Exit: r.ExitCode()}
	var err error
	if now.Sides, err = digestOf(local, rooted(r.Reference.Path), r.Reference.Producer.Name); err != nil {
		return last{}, err
	}
	if now.Input, err = digestOf(r.Alone, cmp.Or(r.Reference.Model, r.Local.Model), r.Local.DType, r.Coverage.Passes, ids); err != nil {
		return last{}, err
	}
	if r.Divergence != nil {
		now.First = r.Divergence.Row.Key()
	}
	return now, nil
}

// rooted makes a path absolute if possible, so the path is valid from every folder.
func rooted(path string) string {
	if all, err := filepath.Abs(path); path != "" && err == nil {
		return all
	}
	return path
}

// digestOf is a digest of values.
func digestOf(values ...any) (string, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// readLast reads the file. It returns no comparisons for a missing file, and for a file in the format of another
// version.
func readLast(path string) (lasts, error) {
	var l lasts
	data, err := files.Read(path, maxLast)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return l, nil
	case err != nil:
		return l, err
	}
	if json.NewDecoder(bytes.NewReader(data)).Decode(&l) != nil {
		return lasts{}, nil
	}
	return l, nil
}

// write keeps the newest comparisons, as many as fit.
func (l lasts) write(path string) error {
	for n := min(len(l.Compared), maxKept); n > 0; n-- {
		text, err := json.Marshal(lasts{l.Compared[:n]})
		if err != nil {
			return err
		}
		if len(text) < maxLast {
			return files.WriteWhole(path, append(text, '\n'))
		}
	}
	return nil
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
		text = "was none, now " + now.First
	case before.First == "":
		text = "was not among the entries compared, now " + now.First
	case now.First == "" && now.Exit == 0:
		text = fmt.Sprintf("was %s, now none: everything compared matches", before.First)
	case now.First == "":
		text = fmt.Sprintf("was %s, now none among the entries compared", before.First)
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
		text += fmt.Sprintf("; compared at %s then, at %s now", before.Scope, now.Scope)
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
			narrow = " in part"
		}
	}
	return fmt.Sprintf("level %d%s", level, narrow)
}

// Moved says how the first divergence moved from one comparison to the next; empty where there is nothing to tell, and where they are
// not of the same input.
func Moved(local settings.Source, before, now *compare.Result) (string, error) {
	if before == nil || now == nil || now.AB || len(before.Inputs) == 0 || len(now.Inputs) == 0 {
		return "", nil
	}
	then, err := found(local, before)
	if err != nil {
		return "", err
	}
	is, err := found(local, now)
	if err != nil || then.Input != is.Input {
		return "", err
	}
	return moved(then, is, now), nil
}
