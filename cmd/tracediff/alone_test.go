package main

import (
	"math"
	"regexp"
	"testing"
)

// Nothing of a report on one trace alone is about two: there is no reference, and what the trace would be against itself is
// in no format.
func TestOneTraceAloneIsNotComparedWithItself(t *testing.T) {
	spoilt := changed{golden: "window.float32", by: map[string]func([]float32){
		downProj: scale(1.03), "logits": func(x []float32) { x[7] = float32(math.NaN()) },
	}}
	const two = `(?i)reference|both sides|local side|relative L2 of|"(rel_l2_?|cosine|metrics|gate)":|table, |error 0|limit 0|is 0, the limit`
	report := says{
		local: spoilt, args: "--isolate local.st", code: exitMismatch,
		want: []string{
			"DERIVED embed_tokens.lookup 1x16x32 float32 - derived",
			"note (nan): logits: 1 of 16384 elements are NaN or overflowed",
			"INCOMPLETE: NaN or overflow in 1 tensor, the first is logits: nothing is tested there",
			"MISMATCH NONFINITE logits ...",
		},
		not: []string{"MATCH .* derived"},
	}.check(t)
	for _, format := range []string{"json", "jsonl", "junit"} {
		report += says{local: spoilt, args: "--format " + format + " --isolate local.st", code: exitMismatch}.check(t)
	}
	report = regexp.MustCompile(`(?m)^reference: none.*$|^certified.*$|"isolated":\s*\{[^}]*\}|by itself:.*`).ReplaceAllString(report, "")
	if line := regexp.MustCompile("(?m)^.*(" + two + ").*$").FindString(report); line != "" {
		t.Errorf("%.300s", line)
	}
	says{
		local: changed{golden: "window.float32", by: map[string]func([]float32){"logits": func(x []float32) { x[7] = float32(math.NaN()) }}},
		args:  "--isolate local.st", code: exitMismatch,
		want: []string{
			"first divergence: logits (softcap, pass 0): MISMATCH NONFINITE",
			"what NaN or infinite where it should not be; wrong on its own inputs: 1 of 16384 elements are beyond what rounding explains (...",
			"look at the operation itself, or its weights, are others than the model's",
		},
	}.check(t)
	says{
		local: changed{golden: "window.float32", drop: downProj}, args: "--isolate local.st", code: exitMismatch,
		want: []string{"layers.1.mlp.down_proj, trace"}, not: []string{"both sides"},
	}.check(t)
}
