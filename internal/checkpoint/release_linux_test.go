package checkpoint_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

// Released weights cost no memory, and are read again as they were: the kernel's own account of the mapping says so.
func TestRelease(t *testing.T) {
	const rows, cols = 4096, 1024
	all := checkpointtest.Random([]checkpoint.Want{{Name: "embed_tokens.weight", Shape: []int{rows, cols}}}, hooks.BF16, "model.", 1)
	ck := open(t, checkpointtest.Write(t, t.TempDir(), []byte(`{}`), all, 1))
	sum := func() (s int) {
		w, _ := ck.Tensor("embed_tokens.weight")
		for _, b := range w.Data {
			s += int(b)
		}
		return s
	}
	before := sum()
	if kb := residentKB(t, "model.safetensors"); kb < rows*cols*2>>10 {
		t.Fatalf("%d KB resident after reading all of it", kb)
	}
	ck.Release()
	if kb := residentKB(t, "model.safetensors"); kb != 0 {
		t.Errorf("%d KB resident after Release", kb)
	}
	if after := sum(); after != before {
		t.Errorf("the weights add up to %d after Release, to %d before", after, before)
	}
}

// Hashing keeps nothing of the weights in memory: neither what identifies small ones at every run, nor what is remembered of large
// ones.
func TestHashingIsReleased(t *testing.T) {
	all := checkpointtest.Random([]checkpoint.Want{{Name: "embed_tokens.weight", Shape: []int{512, 1024}}}, hooks.BF16, "model.", 1)
	dir := checkpointtest.Write(t, t.TempDir(), []byte(`{}`), all, 1)
	ck := open(t, dir)
	ck.Release()
	digest := ck.Digest()
	if kb := residentKB(t, "model.safetensors"); kb != 0 {
		t.Errorf("%d KB resident after Digest", kb)
	}
	for _, scheme := range []checkpoint.Scheme{checkpoint.Whole, checkpoint.Chunked} {
		kb := -1
		ck := open(t, dir)
		ck.Release()
		computed, err := checkpoint.NewDigests(filepath.Join(t.TempDir(), "digests.json")).Compute(t.Context(), ck, scheme, func(int64, int64) {
			kb = residentKB(t, "model.safetensors")
		})
		if err != nil || scheme == checkpoint.Whole && computed != digest || kb != 0 {
			t.Errorf("%s, %v, with %d KB resident; want %s with none", computed, err, kb, digest)
		}
	}
}

// residentKB is what this process has in memory of mappings of a file.
func residentKB(t *testing.T, name string) int {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	total, ours := 0, false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if strings.Contains(strings.SplitN(line, " ", 2)[0], "-") { // a mapping begins with its addresses
			ours = strings.HasSuffix(line, name)
		}
		var kb int
		if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kb); n == 1 && ours {
			total += kb
		}
	}
	return total
}
