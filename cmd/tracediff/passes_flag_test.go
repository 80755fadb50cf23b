package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lastLine is the last line of what a command prints to standard output.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimRight(said, "\n"), "\n")
	return lines[len(lines)-1]
}

// A dump of the prefill is compared with a reference that has decode steps, too: that is incomplete, and the last line names the flag with
// which it is not. So it is where the dump has more passes than the reference. With the flag the passes that both have are the comparison.
func TestFewerPassesNameTheFlag(t *testing.T) {
	f := plainDump(t, func(config string) string { return config })
	whole := filepath.Join(t.TempDir(), "whole.safetensors")
	must(t, os.WriteFile(whole, f.bytes(), 0o600))
	for kept, flag := range map[int]string{1: "0", 3: "0-2"} {
		later := func(key string) bool {
			pass, _, found := strings.Cut(key, "/")
			return found && strings.HasPrefix(pass, "pass") && slices.Index([]string{"pass1", "pass2", "pass3", "pass4"}, pass)+1 >= kept
		}
		less := plainDump(t, func(config string) string { return config })
		less.drop(later)
		some := filepath.Join(t.TempDir(), "some.safetensors")
		must(t, os.WriteFile(some, less.bytes(), 0o600))
		want := "; --passes " + flag + " compares only these"
		if last := lastLine(told(t, exitMismatch, "compare", some, mixedReference)); !strings.HasPrefix(last, "INCOMPLETE: ") || !strings.HasSuffix(last, want) {
			t.Errorf("%d passes: the last line is %q, want one that ends with %q", kept, last, want)
		}
		if last := lastLine(told(t, exitMatch, "compare", some, mixedReference, "--passes", flag)); !strings.HasPrefix(last, "MATCH: ") {
			t.Errorf("%d passes, --passes %s: the last line is %q", kept, flag, last)
		}
		// The side with fewer passes may be the reference.
		said := told(t, exitMismatch, "compare", whole, some, "--model", "../../fixtures/gemma3-tiny", "--all")
		if last := lastLine(said); !strings.HasSuffix(last, want) {
			t.Errorf("a reference of %d passes: the last line is %q, want one that ends with %q", kept, last, want)
		}
		if last := lastLine(told(t, exitMatch, "compare", whole, some, "--model", "../../fixtures/gemma3-tiny", "--passes", flag)); !strings.HasPrefix(last, "MATCH: ") {
			t.Errorf("a reference of %d passes, --passes %s: the last line is %q", kept, flag, last)
		}
	}
}

// A pass that is not compared may have another number of tokens than its positions: nothing is computed from it.
func TestOtherTokensInAPassThatIsNotCompared(t *testing.T) {
	const reference = "../../fixtures/golden/llama-tiny/decode.float32.safetensors"
	data, err := os.ReadFile(reference)
	must(t, err)
	f := readST(t, data)
	ids := f.at("pass1/input_ids")
	ids.Shape, ids.Data = []int{1, 2}, slices.Concat(ids.Data, ids.Data)
	other := filepath.Join(t.TempDir(), "other.safetensors")
	must(t, os.WriteFile(other, (&stFile{tensors: f.tensors}).bytes(), 0o600))
	if last := lastLine(told(t, exitMatch, "compare", other, reference, "--passes", "0")); !strings.HasPrefix(last, "MATCH: all 80 entries compared in 1 of 5 passes") {
		t.Errorf("the last line is %q", last)
	}
}

// Where no entry is compared, no flag makes it a comparison.
func TestNothingComparedNamesNoFlag(t *testing.T) {
	f := plainDump(t, func(config string) string { return config })
	f.drop(func(key string) bool { return strings.HasPrefix(key, "pass") })
	for _, x := range f.tensors {
		x.Key = "mine." + x.Key
	}
	other := filepath.Join(t.TempDir(), "other.safetensors")
	must(t, os.WriteFile(other, f.bytes(), 0o600))
	if last := lastLine(told(t, exitMismatch, "compare", other, mixedReference)); !strings.HasPrefix(last, "INCOMPLETE: 0 entries compared") || strings.Contains(last, "--passes") {
		t.Errorf("the last line is %q", last)
	}
}
