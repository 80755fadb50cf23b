package main

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/capture"
)

// isolatedBugs runs `compare --isolate` on a trace alone and returns the keys of the entries that it flags.
func isolatedBugs(t *testing.T, trace string) (keys []string, report string) {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run([]string{"tracediff", "compare", "--isolate", trace}, nil, &out, &errOut); code != exitMismatch {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errOut.String())
	}
	for _, m := range mismatchLine.FindAllStringSubmatch(out.String(), -1) {
		pass := 0
		for _, digit := range m[1] {
			pass = 10*pass + int(digit-'0')
		}
		keys = append(keys, capture.Key(pass, m[2], 0))
	}
	return keys, out.String()
}

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
		return f.each(func(_ int, v float32) float32 { return v * by })
	}}
}

// Each fault of the table, from a trace at level 2 and nothing else: the cut spans what such a trace does not have, and
// the entry that is flagged is the one that shows the fault first. The entries around it, that are computed from wrong
// tensors, are right by themselves.
func TestFaultsAreIsolatedAtLevel2(t *testing.T) {
	for _, f := range faults {
		t.Run(f.what, func(t *testing.T) {
			local, _ := plant(t, t.TempDir(), 2, f)
			name := f.level2
			if name == "" {
				name = f.entry
			}
			if got, report := isolatedBugs(t, local); !slices.Equal(got, []string{capture.Key(f.pass, name, 0)}) {
				t.Errorf("flagged %v, want pass %d %s\n%s", got, f.pass, name, tail(report))
			}
		})
	}
}

// Several faults in one run are all found, and nothing else is: in different layers and passes, on parallel branches, one
// that hides behind another, and one that undoes another so that what is computed from both is right.
func TestSeveralFaultsAreAllIsolated(t *testing.T) {
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
		t.Run(c.what, func(t *testing.T) {
			var want []string
			for _, f := range c.all {
				want = append(want, capture.Key(f.pass, f.entry, 0))
			}
			local, _ := plant(t, t.TempDir(), 3, c.all...)
			got, report := isolatedBugs(t, local)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("flagged %v, want %v\n%s", got, want, tail(report))
			}
		})
	}
}

// A cutoff that a port fires is recomputed by transformers' side, so that there is none to hold it to; and the tensor after
// it is right given it. It is wrong by itself, and is where the walk stops.
func TestWrongCutoffIsFound(t *testing.T) {
	local, reference := plant(t, t.TempDir(), 3, wrongCutoff)
	got, report := isolatedBugs(t, local)
	if !slices.Equal(got, []string{wrongCutoff.entry}) {
		t.Errorf("flagged %v, want the cutoff alone\n%s", got, tail(report))
	}
	var out, errOut bytes.Buffer
	code := run([]string{"tracediff", "compare", local, reference}, nil, &out, &errOut)
	rows := mismatchLine.FindAllStringSubmatch(out.String(), -1)
	if code != exitMismatch || len(rows) != 1 || rows[0][2] != wrongCutoff.entry {
		t.Errorf("exit %d, stopped at %v, want the cutoff\n%s%s", code, rows, tail(out.String()), errOut.String())
	}
	// The cutoff is no entry of level 2: the walk stops at the tensor that was computed from it, and says why.
	out.Reset()
	code = run([]string{"tracediff", "compare", "--level", "2", local, reference}, nil, &out, &errOut)
	if code != exitMismatch || !bytes.Contains(out.Bytes(), []byte(wrongCutoff.entry+", which it was computed from and which was not compared, is wrong on its own inputs")) {
		t.Errorf("level 2: exit %d\n%s%s", code, tail(out.String()), errOut.String())
	}
}
