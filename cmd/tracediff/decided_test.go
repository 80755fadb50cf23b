package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

const downProj = "layers.1.mlp.down_proj"

// A tensor that a factor of 1e-6 leaves within all limits and one of 1.03 does not.
func factor(by float32) changed {
	return changed{golden: "window.float32", by: map[string]func([]float32){downProj: scale(by)}}
}

// Which of the two verdicts an outcome rests on is said in words, whatever the outcome.
func TestReportSaysWhichVerdictDecided(t *testing.T) {
	healthy, late := factor(1), factor(1.03)
	unmasked := changed{golden: "window.float32", by: map[string]func([]float32){"mask.sliding": func(x []float32) { x[1] = 0 }}}
	const allow = "[[allow]]\ntensors = \"*\"\nreason = \"known\"\n"
	for _, s := range []says{
		{
			why: "a bug within its limit", local: factor(1 + 2e-6), args: "local.st ref.st", code: exitMismatch,
			want: []string{
				"decided by isolation: the operation is wrong on its own inputs; the accumulated error is within its limit",
				"not a tolerance problem: no limit passes layers.1.mlp.down_proj",
			},
			not: []string{"tightest"},
		},
		{
			why: "a bug over its limit", local: late, args: "local.st ref.st", code: exitMismatch,
			want: []string{"decided by both verdicts: the operation is wrong on its own inputs, and the accumulated error is over its limit", "from 8 x noise floor, float32; not a tolerance problem"},
			not:  []string{"tightest"},
		},
		{
			why: "a NaN", local: changed{golden: "window.float32", by: map[string]func([]float32){downProj: func(x []float32) { x[3] = nan32 }}}, args: "local.st ref.st",
			code: exitMismatch, want: []string{"decided by both verdicts: the operation is wrong on its own inputs, and NaN or infinity on one side only"}, not: []string{"tightest"},
		},
		{
			why: "a NaN, not certified", local: changed{golden: "window.float32", by: map[string]func([]float32){downProj: func(x []float32) { x[3] = nan32 }}}, args: "local.st ref.st --no-isolate",
			code: exitMismatch, want: []string{"decided by the comparison: NaN or infinity on one side only, for which there is no tolerance; nothing was certified"}, not: []string{"tightest"},
		},
		{
			why: "an error that a reference has", local: healthy, other: &late, args: "local.st other.st", code: exitMismatch,
			want: []string{"decided by the accumulated error: it is over its limit; the operation is right on its own inputs", "tightest tolerance that passes in the 108 entries compared so far: ..."},
		},
		{
			why: "nothing certified, and a limit is passed", local: late, args: "local.st ref.st --no-isolate --all", code: exitMismatch,
			want: []string{"decided by the accumulated error: it is over its limit; nothing was certified", "tightest tolerance that passes everywhere: ..."},
		},
		{
			why: "a bug of a trace alone", local: late, args: "--isolate local.st", code: exitMismatch,
			want: []string{"decided by isolation: the operation is wrong on its own inputs"},
		},
		{
			why: "an entry that cannot be isolated", code: exitMismatch, args: "local.st ref.st --level 1",
			local: changed{golden: "decode.float32", level: 1, late: true, by: map[string]func([]float32){"layers.0.self_attn.o_proj": scale(1.03)}},
			want:  []string{"decided by the accumulated error: it is over its limit; isolation does not decide it"},
		},
		{
			why: "the same bug on both sides, in what has no tolerance", code: exitMismatch, args: "local.st other.st",
			local: unmasked, other: &unmasked, want: []string{"decided by isolation: the operation is wrong on its own inputs; the comparison finds nothing"},
		},
		{
			why: "a trace alone that lacks what it takes", local: changed{golden: "decode.float32", level: 1, late: true}, args: "--isolate local.st", code: exitMismatch,
			want: []string{"decided by the coverage: nothing that was compared is wrong, but that is not enough"},
		},
		{
			why: "an entry that is not there", local: changed{golden: "window.float32", drop: downProj}, args: "local.st ref.st", code: exitMismatch,
			want: []string{"decided by missing entries: nothing that was compared is wrong"},
		},
		{
			why: "everything right", local: healthy, args: "local.st ref.st",
			want: []string{"MATCH: all 389 entries compared match", "decided by both verdicts: all errors within limits, and every operation verified"},
		},
		{
			why: "everything right, nothing certified", local: healthy, args: "local.st ref.st --no-isolate",
			want: []string{"MATCH: all 389 entries compared match; within limits only", "decided by the comparison only: nothing was certified"},
		},
		{
			why: "a trace alone that is right", local: healthy, args: "--isolate local.st",
			want: []string{"MATCH: all ...", "decided by isolation only: there is no reference"},
		},
		{
			why: "a bug of a trace alone that is allowed", local: late, args: "--isolate local.st --tolerances a.toml", files: map[string]string{"a.toml": allow},
			want: []string{"MATCH: all 389 entries compared are right on their own inputs (1 allowed to differ)"},
		},
		{
			why: "a limit that only drift is past", args: "--tokens 2,527,876 --dtype float32 --rtol 1e-9", not: []string{"^MATCH: [^(]*$"},
			want: []string{
				"MATCH: all 302 entries compared match (...", // how many is a matter of the local arithmetic
				"decided by isolation for ...",
			},
		},
	} {
		t.Run(s.why, func(t *testing.T) { s.check(t) })
	}
}

// A fault between two entries that were compared is the fault of neither, and the words are about it.
func TestReportSaysThatSomethingNotComparedDecided(t *testing.T) {
	t.Parallel()
	const probs, scores = "layers.1.self_attn.probs", "layers.1.self_attn.scores"
	for _, c := range []struct {
		fault fault
		want  string
	}{
		{scaled("window", "layers.1.self_attn.probs_f32", 1+4e-6), "isolation: an entry that it was computed from, and that was not compared, is wrong; the accumulated error is within its limit"},
		{scaled("window", "layers.1.self_attn.probs_f32", 1.03), "both verdicts: an entry that it was computed from, and that was not compared, is wrong, and the accumulated error is over its limit"},
		{scaled("window", scores, 1+4e-6), "isolation: an entry that it was computed from, and that was not compared, is wrong; the accumulated error is within its limit"},
	} {
		local, reference := plant(t, t.TempDir(), hooks.F32, 3, c.fault)
		code, report, rows := compareOther(t, local, reference, "--level", "2")
		if code != exitMismatch || len(rows) != 1 || rows[0] != probs || !hasLine(strings.Split(report, "\n"), "decided by "+c.want) ||
			!strings.Contains(report, c.fault.entry+", which it was computed from and which was not compared, is wrong") {
			t.Errorf("%s: exit %d, %v; no %q in\n%s", c.fault.entry, code, rows, c.want, tail(report))
		}
	}
}

// A few rows have slices of fewer elements than those whose noise floors were measured: a healthy run is within its limits whichever
// positions are looked at.
func TestFewPositionsOfAHealthyRunMatch(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"0", "1", "2"} {
		var stdout, stderr bytes.Buffer
		args := []string{"tracediff", "compare", "--dir", t.TempDir(), "--prompt", "Hello world", "--dtype", "float32", "--positions", at}
		if code := run(args, strings.NewReader(""), &stdout, &stderr); code != exitMatch {
			t.Errorf("position %s: exit %d\n%s%s", at, code, tail(stdout.String()), stderr.String())
		}
	}
}
