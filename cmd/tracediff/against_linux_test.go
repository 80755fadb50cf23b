package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// BenchmarkAgainst is this program against an earlier one, which TRACEDIFF_BEFORE names: both certify the same trace by itself, as whole processes, in
// turns. The figures are medians of the ratios of a round: wall time, time of all processors, and the most memory in use. The traces are those of two
// tiny models; TRACEDIFF_E2B adds a trace of the checkpoint that fixtures/e2b.py makes, of 16 tokens in bfloat16, at level 3. -benchtime 9x takes nine
// rounds.
func BenchmarkAgainst(b *testing.B) {
	before := os.Getenv("TRACEDIFF_BEFORE")
	if before == "" {
		b.Skip("needs TRACEDIFF_BEFORE: an earlier program, such as one that go build made of the commit before")
	}
	after := built(b)
	for _, name := range []string{"llama-tiny/decode.float32", "gemma3n-tiny/decode.bfloat16"} {
		b.Run(name, func(b *testing.B) {
			against(b, before, after, filepath.Join("../../fixtures/golden", name+".safetensors"), filepath.Join("../../fixtures", filepath.Dir(name)))
		})
	}
	model := os.Getenv("TRACEDIFF_E2B")
	if model == "" {
		return
	}
	dir := b.TempDir()
	process(b, after, "capture", "--quiet", "--side", "local", "--model", model, "--dtype", "bfloat16", "--tokens", "2,99,390,875,1554,2427,3494,755,2210,3859,1702,3739,1970,395,3014,1827",
		"--level", "3", "--dir", dir)
	b.Run("E2B", func(b *testing.B) { against(b, before, after, filepath.Join(dir, "local.safetensors"), model) })
}

// against measures two programs in turns. No process finds what another has kept.
func against(b *testing.B, before, after, trace, model string) {
	certify := func(program string) spent {
		return processIn(b, b.TempDir(), program, "compare", "--isolate", trace, "--model", model, "--all", "--quiet")
	}
	var wall, cpu, resident []float64
	for turn := 0; b.Loop(); turn++ {
		programs := []string{before, after}
		if turn%2 == 1 { // whoever runs first finds other caches of the system
			slices.Reverse(programs)
		}
		took := map[string]spent{}
		for _, p := range programs {
			took[p] = certify(p)
		}
		x, y := took[after], took[before]
		wall, cpu, resident = append(wall, x.wall/y.wall), append(cpu, x.cpu/y.cpu), append(resident, x.resident/y.resident)
	}
	b.ReportMetric(0, "ns/op")
	for name, all := range map[string][]float64{"times-the-wall": wall, "times-the-cpu": cpu, "times-the-memory": resident} {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name)
	}
}
