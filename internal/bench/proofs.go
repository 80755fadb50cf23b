package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
)

// proof shows, for an entry with a visible fault, that roundings of the right operation give every element, computed from the run's own
// captures.
type proof struct {
	Entry    string `json:"entry"`
	Elements int64  `json:"elements"`
	Unequal  int64  `json:"unequal"` // elements that transformers' arithmetic does not give to the bit
	// Arithmetic is the arithmetic of the right operation that gives every element, in the report's words. It is empty for an UNIDENTIFIED entry,
	// each of whose elements some choice of roundings gives. Change is the entry's change by the fault, as relative L2, and Power the smallest
	// error of scale that the report says it would have seen.
	Arithmetic string  `json:"arithmetic,omitempty"`
	Change     float64 `json:"change,omitempty"`
	Power      float64 `json:"power,omitempty"`
}

// proofs are the proofs of all entries with a visible fault, without entries whose every bit is right. They are nil if an entry lacks a proof,
// or if every bit is right: a fault that changed something else is not shown to be rounding.
func (s subject) proofs(ctx context.Context, t *capture.Trace, isolator *compare.Isolator, allowed map[string]bool) ([]proof, error) {
	var all []proof
	derived := t.Manifest().Derived
	for _, rec := range t.Records() {
		key := capture.Key(rec.Pass, rec.Name, 0)
		if !allowed[key] || slices.Contains(derived, rec.Name) {
			continue
		}
		c, err := isolator.Certify(ctx, rec.Name, rec.Pass)
		if err != nil {
			return nil, err
		}
		p, proven := proofOf(key, c)
		if !proven {
			return nil, nil
		}
		if p.Unequal > 0 {
			all = append(all, p)
		}
	}
	return all, nil
}

// mostPower bounds the error of scale that a certificate has to see: a certificate that sees only larger errors proves nothing.
const mostPower = 0.1

// proofOf returns a certificate's proof that roundings give the entry, if the certificate proves it.
func proofOf(key string, c *isolate.Certificate) (p proof, proven bool) {
	p = proof{Entry: key, Elements: c.Elements, Unequal: c.Unequal}
	switch c.Outcome {
	case isolate.Exact:
		return p, true
	case isolate.Rounding:
		p.Arithmetic = c.Arithmetic
		if c.Where != "" {
			p.Arithmetic += " (" + c.Where + ")"
		}
		return p, c.Arithmetic != ""
	case isolate.Unidentified:
		p.Change, p.Power = float64(c.RelL2), float64(c.Power)
		return p, c.Unbounded == 0 && p.Change < p.Power && p.Power <= mostPower // false for NaN: no scale is seen there
	}
	return p, false
}

// proven is the table of runs that do not show their fault, with the proof of each.
func proven(results []result, half int) string {
	var out strings.Builder
	for i := range results {
		r := &results[i]
		if r.Half != half || !r.isProven() {
			continue
		}
		if out.Len() == 0 {
			out.WriteString("Not located, and shown to be what roundings give:\n\n| run | level | entries | elements | others than transformers' | what gives them |\n|---|---|---|---|---|---|\n")
		}
		var names, by []string
		var elements, unequal int64
		for _, p := range r.Proofs {
			names = append(names, p.Entry)
			elements, unequal = elements+p.Elements, unequal+p.Unequal
			what := p.Arithmetic
			if what == "" {
				what = fmt.Sprintf("some choice of roundings for each element: UNIDENTIFIED, moved by %.2g, where an error of scale is seen from %.2g on", p.Change, p.Power)
			}
			if !slices.Contains(by, what) {
				by = append(by, what)
			}
		}
		what := strings.Join(by, "; ")
		if len(names) > 2 {
			names = append(names[:1], fmt.Sprintf("%d more", len(names)-1))
		}
		fmt.Fprintf(&out, "| %s, %s, %s | %d | %s | %d | %d | %s |\n", r.Faults[0].Name, r.DType, r.Engine, r.Level, strings.Join(names, ", "), elements, unequal, what)
	}
	return out.String()
}
