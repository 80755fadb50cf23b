package main

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// isolatedBugs runs `compare --isolate` on a trace alone and returns the keys of the entries that it flags.
func isolatedBugs(t *testing.T, trace string, flags ...string) (keys []string, report string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(append([]string{"tracediff", "compare", "--table", "--isolate", trace}, flags...), nil, &out, &errOut)
	for _, m := range notRightLine.FindAllStringSubmatch(out.String(), -1) {
		pass := 0
		for _, digit := range m[1] {
			pass = 10*pass + int(digit-'0')
		}
		keys = append(keys, capture.Key(pass, m[2], 0))
	}
	if want := map[bool]int{true: exitMismatch, false: exitMatch}[len(keys) > 0]; code != want {
		t.Errorf("exit %d, flagged %v\n%s%s", code, keys, out.String(), errOut.String())
	}
	return keys, out.String()
}

// notRightLine is the line of an entry that is wrong by itself, or that no arithmetic is known to give: in 16 bits a mistake that
// is as small as roundings inside is no more than that.
var notRightLine = regexp.MustCompile(`(?m)^(?:MISMATCH \w+|UNVERIFIED) +(?:(\d+) +)?(\S+)`)

// faultNamed is a fault of the table by the entry that is wrong.
func faultNamed(t *testing.T, entry string) fault {
	t.Helper()
	at := slices.IndexFunc(faults, func(f fault) bool { return f.entry == entry })
	if at < 0 {
		t.Fatalf("no fault at %s", entry)
	}
	return faults[at]
}

// wrongCutoff is a port that fires the cutoff itself, with the deviation of n−1.
var wrongCutoff = fault{
	what: "the cutoff is fired, with the variance divided by n−1", golden: "window", entry: "layers.0.mlp.sparsity.cutoff",
	needs: []string{"layers.0.mlp.sparsity.mean", "layers.0.mlp.sparsity.std"},
	make: func(f *faulty) []float32 {
		const width, z = 64, 1.6448535919189453
		mean, std := f.seen["layers.0.mlp.sparsity.mean"], f.seen["layers.0.mlp.sparsity.std"]
		return f.each(func(i int, _ float32) float32 { return mean[i] + z*std[i]*float32(math.Sqrt(width/(width-1.0))) })
	},
}

// scaled multiplies an entry: a factor that is missing or one too many.
func scaled(golden, entry string, by float32) fault {
	return fault{what: entry + " has another factor", golden: golden, entry: entry, make: func(f *faulty) []float32 {
		by := by
		if f.dtype == hooks.BF16 && by > 1 { // the least factor that moves every number: by a unit in the last place
			by = max(by, 1.004)
		}
		return f.each(func(_ int, v float32) float32 { return v * by })
	}}
}

// isolatedInBoth plants faults in a trace of float32 and in one of bfloat16: isolation of the trace alone flags these keys and nothing else,
// though an engine may round as it likes.
func isolatedInBoth(t *testing.T, what string, level int, all []fault, want ...string) {
	t.Helper()
	slices.Sort(want)
	for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16} {
		t.Run(what+"/"+dtype.String(), func(t *testing.T) {
			local, _ := plant(t, t.TempDir(), dtype, level, all...)
			got, report := isolatedBugs(t, local)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("flagged %v, want %v\n%s", got, want, tail(report))
			}
		})
	}
}

// Each fault of the table, from a trace at level 2 and nothing else: the cut spans what such a trace does not have, and
// the entry that is flagged is the one that shows the fault first. The entries around it, that are computed from wrong
// tensors, are right by themselves.
func TestFaultsAreIsolatedAtLevel2(t *testing.T) {
	t.Parallel()
	for _, f := range someFaults() {
		name := f.level2
		if name == "" {
			name = f.entry
		}
		isolatedInBoth(t, f.what, 2, []fault{f}, capture.Key(f.pass, name, 0))
	}
}

// Several faults in one run are all found, and nothing else is: in different layers and passes, on parallel branches, one
// that hides behind another, and one that undoes another so that what is computed from both is right.
func TestSeveralFaultsAreAllIsolated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what string
		all  []fault
	}{
		{"different layers", []fault{faultNamed(t, "layers.1.mlp.act_fn"), faultNamed(t, "layers.4.laurel")}},
		{"different passes", []fault{faultNamed(t, "layers.6.altup.correct"), faultNamed(t, "layers.2.self_attn.k_rope")}},
		{"parallel branches: LAUREL beside attention", []fault{scaled("hello", "layers.3.self_attn.v_proj", 1.01), scaled("hello", "layers.3.laurel.linear_left", 0.99)}},
		{"parallel branches: the MLP's two products", []fault{scaled("hello", "layers.2.mlp.gate_proj", 1.001), scaled("hello", "layers.2.mlp.up_proj", 1.001)}},
		{"a small one behind a large one", []fault{faultNamed(t, "layers.0.mlp.gate_sparse"), scaled("window", "layers.0.mlp.down_proj", 1+1e-4)}},
		{"the cutoff, and one behind it", []fault{wrongCutoff, scaled("window", "layers.0.mlp.act_fn", 1+1e-4)}},
		{"one undoes the other", []fault{scaled("hello", "layers.2.self_attn.q_norm", 2), scaled("hello", "layers.2.self_attn.q_rope", 0.5)}},
	} {
		var want []string
		for _, f := range c.all {
			want = append(want, capture.Key(f.pass, f.entry, 0))
		}
		isolatedInBoth(t, c.what, 3, c.all, want...)
	}
}

// A cutoff that a port fires is recomputed by transformers' side, so that there is none to hold it to; and the tensor after
// it is right given it. It is wrong by itself, and is where the walk stops.
func TestWrongCutoffIsFound(t *testing.T) {
	t.Parallel()
	isolatedInBoth(t, wrongCutoff.what, 3, []fault{wrongCutoff}, wrongCutoff.entry)
	local, reference := plant(t, t.TempDir(), hooks.F32, 3, wrongCutoff)
	var out, errOut bytes.Buffer
	code := run([]string{"tracediff", "compare", "--table", local, reference}, nil, &out, &errOut)
	rows := mismatchLine.FindAllStringSubmatch(out.String(), -1)
	if code != exitMismatch || len(rows) != 1 || rows[0][2] != wrongCutoff.entry {
		t.Errorf("exit %d, stopped at %v, want the cutoff\n%s%s", code, rows, tail(out.String()), errOut.String())
	}
	// The cutoff is no entry of level 2: the walk stops at the tensor that was computed from it, and says why.
	out.Reset()
	code = run([]string{"tracediff", "compare", "--table", "--level", "2", local, reference}, nil, &out, &errOut)
	if code != exitMismatch || !bytes.Contains(out.Bytes(), []byte(wrongCutoff.entry+", which it was computed from and which was not compared, is wrong on its own inputs")) {
		t.Errorf("level 2: exit %d\n%s%s", code, tail(out.String()), errOut.String())
	}
}
