package tracekey_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/internal/tracekey"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]tracekey.Key{
		"logits":               {Name: "logits"},
		"pass2/logits":         {Pass: 2, Name: "logits"},
		"layers.0.out#1":       {Name: "layers.0.out", Firing: 1},
		"pass12/layers.0.a#30": {Pass: 12, Name: "layers.0.a", Firing: 30},
		"grad/lm_head.weight":  {Name: "grad/lm_head.weight"},
		"pass1/grad/w":         {Pass: 1, Name: "grad/w"},
	} {
		if got, ok := tracekey.Parse(text); !ok || got != want || got.String() != text {
			t.Errorf("%q is %+v, %t, want %+v", text, got, ok, want)
		}
		if got, ok := tracekey.Read(text); !ok || got != want {
			t.Errorf("%q, by a person, is %+v, %t, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"pass0/a", "pass01/a", "pass-1/a", "pass+1/a", "pass/a", "passx/a", "a#0", "a#01", "a#", "a#-1", "a/b", "pass99999999999999999999/a", "/a"} {
		if got, ok := tracekey.Parse(text); ok {
			t.Errorf("%q is a key: %+v", text, got)
		}
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]tracekey.Key{
		"pass0/a": {Name: "a"}, "pass07/a#003": {Pass: 7, Name: "a", Firing: 3}, "a#0": {Name: "a"}, "a#x": {Name: "a#x"},
		"run/a": {Name: "run/a"}, "pass1/pass2/a": {Pass: 1, Name: "pass2/a"}, "passx/a": {Name: "passx/a"},
	} {
		if got, ok := tracekey.Read(text); !ok || got != want {
			t.Errorf("%q is %+v, %t, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "pass99999999999999999999/a", "a#99999999999999999999"} {
		if got, ok := tracekey.Read(text); ok {
			t.Errorf("%q is a key: %+v", text, got)
		}
	}
}

func TestPass(t *testing.T) {
	for _, want := range []struct {
		text, rest, after string
		pass              int
		found, is         bool // by CutPass, by AfterPass
	}{
		{"pass3/a/b#1", "a/b#1", "a/b#1", 3, true, true},
		{"pass0/a", "a", "a", 0, true, true},
		{"pass2147483647/a", "a", "a", 2147483647, true, true},
		{"pass2147483648/a", "pass2147483648/a", "a", 0, false, true},
		{"pass03/a", "pass03/a", "a", 0, false, true},
		{"pass_3/a", "pass_3/a", "a", 0, false, true},
		{"pass3/", "pass3/", "", 0, false, true},
		{"pass3", "pass3", "", 0, false, false},
		{"grad/a", "grad/a", "a", 0, false, false},
		{"a", "a", "", 0, false, false},
	} {
		got := want
		got.pass, got.rest, got.found = tracekey.CutPass(want.text)
		got.after, got.is = tracekey.AfterPass(want.text)
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	room := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(10, func() { tracekey.Key{Pass: 3, Name: "layers.0.out", Firing: 2}.Append(room) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Every key that can be read can be written, and nothing else is a key.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a", "pass1/a#2", "grad/a", "pass1/grad/a", "pass0/a", "a#b#1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, ok := tracekey.Parse(text)
		if ok && k.String() != text {
			t.Errorf("%q is %+v, which is written %q", text, k, k)
		}
		after := tracekey.Key{Name: k.Name, Firing: k.Firing}.String()
		if pass, rest, found := tracekey.CutPass(text); ok && k.Pass > 0 && k.Pass <= math.MaxInt32 && after != "" && (!found || pass != k.Pass || rest != after) {
			t.Errorf("%q is of pass %d, and is cut into %d and %q", text, k.Pass, pass, rest)
		}
	})
}
