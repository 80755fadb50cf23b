package main

import (
	"math"
	"os"
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
		local: spoilt, args: "--isolate local.st --report json=o.json --report jsonl=o.jsonl --report junit=o.xml", code: exitMismatch,
		want: []string{
			"DERIVED embed_tokens.lookup 1x16x32 float32 - derived",
			"note (nan): logits: 1 of 16384 elements are NaN or overflowed",
			"INCOMPLETE: NaN or overflow in 1 tensor, the first is logits: nothing is tested there",
			"MISMATCH NONFINITE logits ...",
		},
		not: []string{"MATCH .* derived"},
	}.check(t)
	for _, file := range []string{"o.json", "o.jsonl", "o.xml"} {
		text, err := os.ReadFile(file)
		must(t, err)
		report += string(text)
	}
	report = regexp.MustCompile(`(?m)^reference: none.*$|^recomputed.*$|"isolated":\s*\{[^}]*\}|on its own inputs:.*`).ReplaceAllString(report, "")
	if line := regexp.MustCompile("(?m)^.*(" + two + ").*$").FindString(report); line != "" {
		t.Errorf("%.300s", line)
	}
	says{
		local: changed{golden: "window.float32", by: map[string]func([]float32){"logits": func(x []float32) { x[7] = float32(math.NaN()) }}},
		args:  "--isolate local.st", code: exitMismatch,
		want: []string{
			"first divergence: logits (softcap, pass 0): MISMATCH NONFINITE",
			"what NaN or infinite where it should not be; wrong on its own inputs: 1 of 16384 elements differ by more than rounding (...",
			"look at check this operation in your port",
		},
	}.check(t)
	says{
		local: changed{golden: "window.float32", drop: downProj}, args: "--isolate local.st", code: exitMismatch,
		want: []string{"MISSING: 1 entry is declared and not dumped", "layers.1.mlp.down_proj"}, not: []string{"both sides", "down_proj, trace"},
	}.check(t)
}

// The arithmetic and the bound that were asked for are said once, and are no finding about every operation.
func TestArithmeticAskedForIsNoFinding(t *testing.T) {
	healthy := changed{golden: "window.bfloat16"}
	for args, want := range map[string]string{
		"--arithmetic strict": "as asked for: strict arithmetic, probabilistic bounds",
		"--bound rigorous":    "as asked for: auto arithmetic, rigorous bounds",
	} {
		says{local: healthy, args: args + " --isolate local.st", want: []string{want}, not: []string{"^arithmetic: "}}.check(t)
	}
	says{local: healthy, args: "--isolate local.st", not: []string{"as asked for"}}.check(t)
	says{local: healthy, args: "--arithmetic strict --format json --isolate local.st", want: []string{`"arithmetic": "strict",`, `"bound": "probabilistic",`}}.check(t)
}

// Why entries are not isolated is said for each reason, with how many it keeps from it.
func TestReasonsForNotIsolating(t *testing.T) {
	report := says{
		local: changed{golden: "decode.bfloat16", level: 1, late: true}, args: "--isolate local.st", code: exitMismatch,
		want: []string{"not isolated: 49 entries: position_ids of pass 0 was not captured, and nothing computes it; dump position_ids to have it (the first is layers.0.self_attn.o_proj): 49 self_attn.o_proj"},
		not:  []string{"that takes"},
	}.check(t)
	found := regexp.MustCompile(`(?m), (\d+) not isolated$`).FindStringSubmatch(report)
	sum := 0
	for _, reason := range regexp.MustCompile(`(?m)^not isolated: (\d+) entr`).FindAllStringSubmatch(report, -1) {
		sum += atoi(reason[1])
	}
	if found == nil || sum != atoi(found[1]) {
		t.Errorf("the reasons are those of %d entries, not of %v", sum, found)
	}
}
