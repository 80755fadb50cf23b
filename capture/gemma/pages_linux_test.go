package gemma_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/order"
)

// faultAround is how far around a touched page the kernel maps others that it has in memory anyway: 64 KiB, or a huge
// page where the file's pages form one.
const faultAround = 2 << 20

// pagesConfig has layers of some 12 MB and a per-layer table of 20 MB.
const pagesConfig = `{"model_type": "gemma3n_text", "vocab_size": 512, "vocab_size_per_layer_input": 32768, "hidden_size": 512,
	"hidden_size_per_layer_input": 64, "intermediate_size": 3072, "num_hidden_layers": 5, "num_attention_heads": 8,
	"num_key_value_heads": 2, "head_dim": 64, "num_kv_shared_layers": 0, "sliding_window": 5,
	"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention", "full_attention"]}`

// A capture of some layers maps no page of the others' weights and reads none of them, and of the per-layer table the rows of its
// tokens: the process's own page table and its count of bytes say so. It runs in a child, since a mapping keeps its pages.
func TestLayersTouchNoOtherLayersPages(t *testing.T) {
	if dir := os.Getenv("TRACEDIFF_TEST_PAGES"); dir != "" {
		touch(t, dir)
		return
	}
	c, err := order.ReadConfig([]byte(pagesConfig))
	must(t, err)
	l, err := order.New(c)
	must(t, err)
	dir := t.TempDir()
	all := checkpointtest.Random(wants(l), hooks.BF16, "model.", 7)
	checkpointtest.Write(t, dir, []byte(pagesConfig), all, 1)
	cmd := exec.Command(os.Args[0], "-test.run=^TestLayersTouchNoOtherLayersPages$")
	cmd.Env = append(os.Environ(), "TRACEDIFF_TEST_PAGES="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	table, err := os.ReadFile(filepath.Join(dir, "resident"))
	must(t, err)
	resident := make([]bool, len(table))
	for i, b := range table {
		resident[i] = b == '1'
	}
	for name, n := range residentBytes(t, filepath.Join(dir, "model.safetensors"), all, resident) {
		switch {
		case ofOtherLayer(name) && n > 0:
			t.Errorf("%d bytes of %s are mapped, of a layer that was not asked for", n, name)
		case name == "model.embed_tokens_per_layer.weight" && n > 3*faultAround:
			t.Errorf("%d bytes of the per-layer table are mapped for three tokens", n)
		}
	}
	asked := 0 // what the two layers multiply with, and the projections before them
	for _, x := range all {
		if !strings.HasPrefix(x.Name, "model.embed") && !ofOtherLayer(x.Name) {
			asked += len(x.Data)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "read"))
	must(t, err)
	read, err := strconv.Atoi(string(text))
	must(t, err)
	if read > asked+1<<20 {
		t.Errorf("%d bytes were read; the layers that were asked for have %d", read, asked)
	}
	if runtime.GOARCH == "amd64" && read < asked/2 {
		t.Errorf("%d bytes of %d were read: the test measures nothing", read, asked)
	}
}

// ofOtherLayer reports whether a weight is of a layer that is not captured.
func ofOtherLayer(name string) bool {
	return strings.HasPrefix(name, "model.layers.") && !strings.HasPrefix(name, "model.layers.1.") && !strings.HasPrefix(name, "model.layers.0.")
}

// readBytes is how many bytes this process has read from files.
func readBytes(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	must(t, err)
	if _, err := fmt.Sscanf(string(text), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// touch captures layers 0 and 1 and writes down which pages of the weights are mapped.
func touch(t *testing.T, dir string) {
	ck, err := checkpoint.Open(dir)
	must(t, err)
	c, err := order.ReadConfig(ck.Config())
	must(t, err)
	l, err := order.New(c)
	must(t, err)
	layers, err := capture.ParseRanges("0-1")
	must(t, err)
	before := readBytes(t)
	_, err = gemma.Capture(context.Background(), gemma.Job{
		Checkpoint: ck, List: l, DType: hooks.BF16, Passes: [][]int{{2, 7, 9}}, Path: filepath.Join(dir, "out.safetensors"),
		Manifest: capture.Manifest{Scope: capture.Scope{Level: 3, Layers: layers}},
	})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "read"), []byte(strconv.Itoa(readBytes(t)-before)), 0o666))
	from, to := mapping(t, "model.safetensors")
	table, err := os.Open("/proc/self/pagemap")
	must(t, err)
	defer table.Close()
	page := uint64(os.Getpagesize())
	entries := make([]byte, (to-from)/page*8)
	_, err = table.ReadAt(entries, int64(from/page*8))
	must(t, err)
	var out []byte
	for i := 0; i < len(entries); i += 8 {
		out = append(out, '0'+byte(binary.LittleEndian.Uint64(entries[i:])>>63))
	}
	must(t, os.WriteFile(filepath.Join(dir, "resident"), out, 0o666))
}

// mapping finds where a file is mapped in this process.
func mapping(t *testing.T, file string) (from, to uint64) {
	t.Helper()
	maps, err := os.Open("/proc/self/maps")
	must(t, err)
	defer maps.Close()
	for s := bufio.NewScanner(maps); s.Scan(); {
		if strings.HasSuffix(s.Text(), file) {
			if _, err := fmt.Sscanf(s.Text(), "%x-%x", &from, &to); err != nil {
				t.Fatal(err)
			}
			return from, to
		}
	}
	t.Fatalf("%s is not mapped", file)
	return 0, 0
}

// residentBytes counts, per tensor, the mapped bytes farther than faultAround from every tensor that may be touched.
func residentBytes(t *testing.T, file string, all []checkpointtest.Tensor, resident []bool) map[string]int {
	t.Helper()
	info, err := os.Stat(file)
	must(t, err)
	at := int(info.Size())
	for _, x := range all {
		at -= len(x.Data)
	}
	page := os.Getpagesize()
	owner := make([]string, len(resident)) // the tensor of a page, empty near one that may be touched
	var free []int
	for _, x := range all {
		first, last := at/page, (at+len(x.Data)-1)/page
		for p := first; p <= last; p++ {
			owner[p] = x.Name
		}
		if !ofOtherLayer(x.Name) {
			for p := max(0, first-faultAround/page); p <= min(len(resident)-1, last+faultAround/page); p++ {
				if p < first || p > last {
					free = append(free, p)
				}
			}
		}
		at += len(x.Data)
	}
	count := map[string]int{}
	for p, name := range owner {
		if name != "" && resident[p] && !slices.Contains(free, p) {
			count[name] += page
		}
	}
	return count
}
