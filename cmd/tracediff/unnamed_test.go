package main

import (
	"bytes"
	escaped "html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
)

// twoFactors are mistakes of one role that no one edit gives: a factor in one layer, and noise in another.
func twoFactors() []fault {
	noise := fault{what: "noise", golden: "window", entry: "layers.3.mlp.up_proj", make: func(f *faulty) []float32 {
		return f.each(func(i int, v float32) float32 { return v + float32(math.Sin(float64(i*i))) })
	}}
	return []fault{scaled("window", "layers.1.mlp.up_proj", 1.5), noise}
}

// misplaced reports the first of some texts that does not stand behind the one before it; empty where all do.
func misplaced(text string, all ...string) string {
	for _, want := range all {
		_, rest, found := strings.Cut(text, want)
		if !found {
			return want
		}
		text = rest
	}
	return ""
}

// A BUG without a name begins with what is known: which elements differ, where most, which mistake comes nearest and what that one leaves. What was tried is said with
// --verbose alone. The page of HTML has the same lines.
func TestBugWithoutANameBeginsWithWhatIsKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	local, golden := plant(t, dir, hooks.F32, 3, twoFactors()...)
	page := filepath.Join(dir, "page.html")
	said := func(args ...string) string {
		var out, errOut bytes.Buffer
		if code := run(append([]string{"tracediff", "compare", local, golden}, args...), nil, &out, &errOut); code != exitMismatch {
			t.Fatalf("exit %d\n%s%s", code, out.String(), errOut.String())
		}
		return unbroken(out.String())
	}
	lines := []string{
		"first divergence: layers.1.mlp.up_proj", "wrong on its own inputs: 1024 of 1024 elements differ by more than rounding", "worst relative L2 by part: token ",
		"largest at [", "bug unexplained: no mistake that was tried reproduces all elements",
		"nearest the result is multiplied by 1.5: it gives 1 of 2 entries, and leaves 1024 of 1024 elements of layers.3.mlp.up_proj",
	}
	short := said("--report", "html="+page)
	if missing := misplaced(short, lines...); missing != "" {
		t.Errorf("%q is not there, or not at its place:\n%s", missing, short)
	}
	if strings.Contains(short, "other tensors, orders of elements") {
		t.Errorf("it says what was tried:\n%s", short)
	}
	full := said("--verbose")
	if !regexp.MustCompile(`tried \d+ mistakes: weights, other tensors, `).MatchString(full) || misplaced(full, "what relative L2 of the tensor", "bug unexplained: ", "nearest ", "tried ") != "" {
		t.Errorf("--verbose does not say what was tried:\n%s", full)
	}

	text, err := os.ReadFile(page)
	must(t, err)
	section := regexp.MustCompile(`(?s)<section class="problem">.*?</section>`).FindString(string(text))
	words := unbroken(escaped.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(section, " ")))
	for _, want := range slices.Concat(lines[1:], []string{"nearest"}) {
		if !strings.Contains(words, want) {
			t.Errorf("the page lacks %q:\n%s", want, words)
		}
	}
	if strings.Contains(words, "other tensors, orders of elements") {
		t.Errorf("the page of HTML says what was tried:\n%s", words)
	}
}

// Which heads are wrong is said where all are, too.
func TestWrongHeadsAreSaid(t *testing.T) {
	t.Parallel()
	local, golden := plant(t, t.TempDir(), hooks.F32, 3, noisyScores)
	var out, errOut bytes.Buffer
	if code := run([]string{"tracediff", "compare", local, golden}, nil, &out, &errOut); code != exitMismatch {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errOut.String())
	}
	text := unbroken(out.String())
	if missing := misplaced(text, "first divergence: layers.1.self_attn.scores", "worst relative L2 by part: head "); missing != "" {
		t.Errorf("no %q in\n%s", missing, text)
	}
}

// The ratio to the rounding bound is that of elements which have a bound: a masked key has a probability of 0, and whatever is there in its place is 1e40 times as much and more.
// Where masked elements alone are wrong there is no ratio.
func TestMaskedKeysGiveNoRatio(t *testing.T) {
	t.Parallel()
	const probs = "layers.1.self_attn.probs_f32"
	for _, c := range []struct {
		what   string
		seen   float32 // by which the probability of a seen key is multiplied
		ratios bool
	}{{"masked keys and seen ones", 1.01, true}, {"masked keys alone", 1, false}} {
		f := fault{what: c.what, golden: "window", entry: probs, make: func(f *faulty) []float32 {
			return f.each(func(_ int, v float32) float32 {
				if v == 0 {
					return 0.25
				}
				return v * c.seen
			})
		}}
		local, _ := plant(t, t.TempDir(), hooks.F32, 3, f)
		var out, errOut bytes.Buffer
		if code := run([]string{"tracediff", "compare", "--isolate", local}, nil, &out, &errOut); code != exitMismatch {
			t.Fatalf("%s: exit %d\n%s%s", c.what, code, out.String(), errOut.String())
		}
		text := unbroken(out.String())
		if !strings.Contains(text, "first divergence: "+probs) {
			t.Fatalf("%s: %s", c.what, text)
		}
		ratio := regexp.MustCompile(`up to (\S+) times the rounding bound`).FindStringSubmatch(text)
		if c.ratios != (ratio != nil) || ratio != nil && !regexp.MustCompile(`^[1-9.]+e\+0[3-6]$`).MatchString(ratio[1]) {
			t.Errorf("%s: the ratio is %v in\n%s", c.what, ratio, text)
		}
	}
}

// A weight of a port that was rounded to codes has a name. Ports do so on purpose, so that the next step is the port's own weights and not a correction.
func TestARoundedWeightLeadsToThePortsWeights(t *testing.T) {
	t.Parallel()
	const entry = "layers.1.mlp.down_proj"
	ck, list := openEmbedded(t)
	defer ck.Close()
	e, ok := list.Lookup(entry)
	if !ok || len(e.Weights) != 1 {
		t.Fatalf("%+v", e)
	}
	rows, err := reference.Weights(ck, hooks.F32)(e.Weights[0])
	must(t, err)
	n, width := rows.Size()
	codes := make([][]float32, n) // in 8 bits by row
	for i := range codes {
		row := make([]float64, width)
		must(t, rows.Row(row, i))
		most := 0.0
		for _, x := range row {
			most = max(most, math.Abs(x))
		}
		step := float32(most) / 127
		for _, x := range row {
			codes[i] = append(codes[i], float32(math.RoundToEven(float64(float32(x)/step)))*step)
		}
	}
	local, golden := plant(t, t.TempDir(), hooks.F32, 3, fault{
		what: "the weight is rounded", golden: "window", entry: entry, needs: []string{"layers.1.mlp.gated"},
		make: func(f *faulty) []float32 {
			in, out := f.seen["layers.1.mlp.gated"], make([]float32, len(f.now))
			for i := range out {
				x := in[i/n*width:][:width]
				var sum float32
				for k, w := range codes[i%n] {
					sum += w * x[k]
				}
				out[i] = sum
			}
			return out
		},
	})
	var out, errOut bytes.Buffer
	code := run([]string{"tracediff", "compare", local, golden}, nil, &out, &errOut)
	text := unbroken(out.String())
	if missing := misplaced(text, "bug "+entry+".weight is quantised to 8 bits with a scale per row", "next verify the port with its own weights: --weights FILE"); code != exitMismatch || missing != "" {
		t.Errorf("exit %d, no %q in\n%s", code, missing, text)
	}
	if strings.Contains(text, "correct this in your port") {
		t.Errorf("it is to be corrected:\n%s", text)
	}
}
