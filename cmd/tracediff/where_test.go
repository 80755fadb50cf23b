package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

// What is outside is said so that an index is not taken for a number of them, nor elements here and there for a column.
// The tensor has 16 tokens and 32 channels.
func TestWhereElementsAreOutside(t *testing.T) {
	const channels = 32
	wrong := map[string]func(token, channel int) bool{
		"(everywhere)":                    func(int, int) bool { return true },
		"(channel 7)":                     func(_, c int) bool { return c == 7 },
		"(channels 3, 7 (of 32))":         func(_, c int) bool { return c == 3 || c == 7 },
		"(channels 3 to 9 (of 32))":       func(_, c int) bool { return c >= 3 && c <= 9 },
		"(10 of 32 channels)":             func(_, c int) bool { return c%3 == 1 && c < 30 },
		"(tokens 5 and after)":            func(tok, _ int) bool { return tok >= 5 },
		"(token 2, channel 3)":            func(tok, c int) bool { return tok == 2 && c == 3 },
		"(scattered over 16 of 32 chann…": func(tok, c int) bool { return c == 2*tok },
		"(scattered over all of it)":      func(tok, c int) bool { return c/2 == tok },
		"(tokens 2, 3 (of 16), channel 0": func(tok, c int) bool { return c == 0 && (tok == 2 || tok == 3) },
	}
	for want, is := range wrong {
		want, open := strings.CutSuffix(want, "…")
		spoilt := changed{golden: "window.float32", by: map[string]func([]float32){downProj: func(x []float32) {
			for i, v := range x {
				if is(i/channels, i%channels) {
					x[i] = v + 1 + float32(i%7)
				}
			}
		}}}
		report := says{local: spoilt, args: "--isolate local.st", code: exitMismatch}.check(t)
		if !open && !strings.Contains(report, " bound "+want) || !strings.Contains(report, want) {
			t.Errorf("no %q in\n%s", want, tail(report))
		}
	}
}

// A factor that all elements share is named where they are wrong, and is nothing where each of them is within rounding.
func TestFactorIsNamed(t *testing.T) {
	times := func(by float32) changed {
		return changed{golden: "window.float32", by: map[string]func([]float32){"lm_head": scale(by)}}
	}
	says{
		local: times(1.03), args: "--isolate local.st", code: exitMismatch,
		want: []string{"what wrong on its own inputs: 16384 of 16384 elements differ by more than rounding, up to 2.1e+04 times the rounding bound (everywhere); all of it is scaled by 1.02999997 ± ..."},
	}.check(t)
	says{ // within rounding in every element: a scale alone is no evidence
		local: times(1 + 10*0x1p-23), args: "--isolate local.st", code: exitMismatch,
		want: []string{"last match lm_head", "first divergence: logits ..."},
	}.check(t)
	says{
		local: changed{golden: "window.float32", by: map[string]func([]float32){"lm_head": func(x []float32) {
			for i := range x {
				x[i] += float32(i%5) / 4
			}
		}}},
		args: "--isolate local.st", code: exitMismatch, not: []string{"scaled by"},
	}.check(t)
}

// Where the error of the first fault goes ends at the next fault: what follows that one shows it, and not the first.
func TestDownstreamEndsAtTheNextFault(t *testing.T) {
	t.Parallel()
	const next = "layers.3.self_attn.o_proj"
	local, reference := plant(t, t.TempDir(), hooks.F32, 3, scaled("window", "layers.1.mlp.up_proj", 1.5), scaled("window", next, 1.5))
	code, report, _ := compareOther(t, "--isolate", local, reference)
	if want := " entries computed from it, up to " + next + ", which is wrong on its own inputs, "; code != exitMismatch || !strings.Contains(report, want) {
		t.Errorf("exit %d, no %q in\n%s", code, want, tail(report))
	}
	if strings.Contains(report, "downstream      reaches logits") {
		t.Error("the first fault is followed through the second")
	}
}

// How small an error would have shown is there for every entry that asks for it, and where a divergence is right by itself.
func TestPowerIsShown(t *testing.T) {
	healthy := changed{golden: "window.float32"}
	report := says{local: healthy, args: "--verbose --isolate local.st"}.check(t)
	if !regexp.MustCompile(`(?m)^verdict +name +shape +dtype +isolated +power +scale - 1 +note$`).MatchString(report) ||
		!regexp.MustCompile(`(?m)^MATCH +lm_head +1x16x1024 +float32 +ROUNDING [0-9.e-]+ +[0-9.]+e-0[67] +-?[0-9.]+e-[01][0-9] ± [0-9.]+e-[01][0-9]$`).MatchString(report) {
		t.Errorf("no power in\n%s", report)
	}
	says{local: healthy, args: "--isolate local.st", not: []string{"power"}}.check(t)
	late := factor(1.03)
	report = says{
		local: healthy, other: &late, args: "local.st other.st", code: exitMismatch,
		want: []string{"isolated ROUNDING, relative L2 ...", "look at your port's tensor is 0.970874 times the reference: ...", "chain the operation is correct on its own inputs, but not every operation before it was verified, so the error does not count as drift", "the reference: layers.1.mlp.down_proj: it is wrong on its own inputs"},
	}.check(t)
	if !regexp.MustCompile(`(?m)^  isolated +ROUNDING, relative L2 [0-9.e-]+; a [0-9.]+(e-05)? % scale error would be detected here$`).MatchString(report) {
		t.Errorf("no power in the block of\n%s", report)
	}
}
