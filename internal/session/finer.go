package session

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/plain"
)

// finer says how to make a reference in float32, where a port that computes in float32 is compared with one in bfloat16 and that has a part in the outcome; empty
// where it has none: where every operation is right on its own inputs, or a person gave the limits.
func (in *inputs) finer(r *compare.Result) (string, error) {
	if in.asked.AB != nil || in.alone {
		return "", nil
	}
	var rows []*compare.Row
	for i := range r.Rows {
		if row := &r.Rows[i]; byCoarseLimit(row, in.o.Limits) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return "", nil
	}
	if is, err := madeInFloat32(in.local, rows); !is || err != nil {
		return "", err
	}
	return "the port computes in float32 and the reference in bfloat16; with a float32 reference limits are narrower, and there is no bfloat16 rounding: " + float32Reference(r, in.ref), nil
}

// byCoarseLimit reports whether a row holds float32 in the port and bfloat16 in the reference, and is a mismatch or
// matches only by the limits of bfloat16.
func byCoarseLimit(r *compare.Row, limits *gate.Limits) bool {
	if r.Derived || r.Local.DType != hooks.F32.String() || r.Ref.DType != hooks.BF16.String() || r.Gate == nil || len(r.Gate.Checks) == 0 {
		return false
	}
	if asked, _ := limits.Tolerance(r.Name, r.Pass); asked != nil {
		return false
	}
	if r.Verdict == compare.Mismatch {
		return r.Decided != compare.ByEquality
	}
	return r.Isolated == nil || !r.Isolated.Good()
}

// madeInFloat32 reports whether a trace was computed in float32: its manifest says so, or the manifest says nothing and some number of the rows does not fit into
// bfloat16. A tensor that was computed in bfloat16 may be stored in float32.
func madeInFloat32(t *capture.Trace, rows []*compare.Row) (bool, error) {
	const most = 64 // tensors that are read
	if d := t.Manifest().DType; measure.Computes(d) {
		return d == hooks.F32, nil
	}
	for _, row := range rows[:min(len(rows), most)] {
		rec, ok := t.Lookup(row.Pass, row.Name)
		if !ok {
			continue
		}
		if holds, err := measure.Holds(t, rec, hooks.BF16); !holds || err != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// float32Reference is the command that makes a reference of a comparison in float32.
func float32Reference(r *compare.Result, ref *capture.Trace) string {
	const most = 64 // ids that are written out
	words := []string{"tracediff capture --dtype float32 --side reference"}
	m := ref.Manifest()
	switch m.Producer.Name {
	case "transformers":
		words = append(words, "--reference hf")
	case "tracediff":
		words = append(words, "--reference go")
	}
	if m.Model != "" {
		words = append(words, "--model "+plain.QuoteShell(plain.Text(m.Model)))
	}
	var passes []string
	n := 0
	for _, in := range r.Inputs {
		var ids []string
		for _, id := range in.Reference {
			ids = append(ids, strconv.FormatInt(id, 10))
		}
		n += len(ids)
		passes = append(passes, strings.Join(ids, ","))
	}
	switch {
	case n > most:
		words = append(words, "--tokens IDS")
	case n > 0 && !slices.Contains(passes, ""):
		words = append(words, "--tokens "+plain.QuoteShell(strings.Join(passes, ";")))
	}
	return strings.Join(words, " ")
}
