package recorded_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/order/recorded"
)

// muchLater is longer than anything here takes on a busy machine: a second where nothing else runs. What has no limit takes longer.
const muchLater = time.Minute

// What a small file claims is refused, or said not to be known, before memory is taken for it.
func TestSmallFilesAreCheap(t *testing.T) {
	const neg = `{"op":"neg","in":["$0"],"out":[["float32",[1,1,4]]]}`
	times := func(n int, text func(k int) string) string {
		all := make([]string, n)
		for k := range all {
			all[k] = text(k)
		}
		return strings.Join(all, ",")
	}
	same := func(text string) func(int) string { return func(int) string { return text } }
	pass := func(calls string) string { return `"passes":[{"tokens":1,"past":0,"calls":[` + calls + `]}]` }
	// each makes a tensor of a size of its own, and computes of it
	own := func(n int, line func(k int) string) string {
		return pass(`[0,-1,[]]`) + `,"templates":[[` + times(n, func(k int) string {
			return line(k) + fmt.Sprintf(`,{"name":"n%d","of":"t%d","level":3}`, k, 2*k+1)
		}) + `]]`
	}
	for _, c := range []struct{ why, text, want string }{
		{"a template in a thousand calls", pass(times(1000, same(`[0,-1,[1]]`))) + `,"templates":[[` + times(1000, same(neg)) + `]]`, "lines in all passes"},
		{
			"operands by the thousand", pass(times(1000, same(`[0,-1,[]]`))) + `,"templates":[[{"op":"cat","in":[` + times(4000, same("1")) + `],"out":[["float32",[1]]]}]]`,
			"operands and results in all passes",
		},
		{"64 refinement steps of a model of 32 layers", `"passes":[` + times(64, same(`{"tokens":1,"past":0,"calls":[`+times(32, same(`[0,-1,[1]]`))+`]}`)) + `],"templates":[[` + times(70, same(`{"op":"fill","in":[1],"out":[["float32",[1,1,4]]]}`)) + `]]`, ""},
		{"lines of templates", pass("") + `,"templates":[[` + times(1<<17+1, same(`{"op":"neg"}`)) + `]]`, "lines in templates"},
		{"runs of other lengths", `"runs":[` + times(9, same(`[{"tokens":1,"past":0,"calls":[`+times(100, same(`[1,-1,[1]]`))+`]}]`)) + `],` +
			pass("") + `,"templates":[[],[` + times(1000, same(neg)) + `]]`, "lines in all runs"},
		{"holes", pass(`[0,-1,[` + times(1<<20, same("1")) + `]]`), "numbers, texts, lists and objects"},
		{"weights", `"weights":{` + times(1<<17, func(k int) string { return fmt.Sprintf(`"%d":{}`, k) }) + `},` + pass(""), "constants and weights"},
		{"numbers by a recipe", pass("") + `,"constants":[{"dtype":"int8","shape":[16777216],"from":[{"kind":"fill","value":0}]}]`, "numbers in constants"},
		{
			"a recipe for each pass", `"passes":[` + times(4000, same(`{"tokens":512,"past":0}`)) + `],"constants":[{"dtype":"int8","shape":[512,512],"from":[{"kind":"mask"}]}]`,
			"numbers have to be made",
		},
		{"triangles of ones", own(300, func(k int) string {
			return fmt.Sprintf(`{"op":"fill","in":[1],"out":[["float32",[1,%d]]]},{"op":"cumsum","in":["t%d"],"out":[["float32",[1,%d]]],"attr":{"dim":1}}`, 2048-k, 2*k, 2048-k)
		}), "too many steps and numbers"},
		{"memory that is written to", own(300, func(k int) string {
			n := 1<<22 - k
			return fmt.Sprintf(`{"op":"fill","in":[1],"out":[["float32",[%d]]]},{"op":"write","in":["t%d","t%d"],"out":[["float32",[%d]]],"attr":{"shape":[%d],"stride":[1]}}`, n, 2*k, 2*k, n, n)
		}), "too many steps and numbers"},
		{"a step for each element", own(300, func(k int) string {
			return fmt.Sprintf(`{"op":"fill","in":[1],"out":[["float32",[%d,4096]]]},{"op":"amax","in":["t%d"],"out":[["float32",[%d]]],"attr":{"dim":[1]}}`, k+1, 2*k, k+1)
		}), "too many steps and numbers"},
		{"a number everywhere", own(1, same(`{"op":"fill","in":[1],"out":[["float32",[2147483648]]]},{"op":"sum","in":["t0"],"out":[["float32",[]]]}`)), "2147483648 elements, made of fewer than"},
		{"views of a few elements", own(1, same(`{"op":"fill","in":[1],"out":[["float32",[4]]]},{"op":"neg","in":[["t0",[536870912,4],[0,1],0]],"out":[["float32",[536870912,4]]]}`)), "2147483648 elements, made of fewer than"},
		{"expansions of expansions", own(1, same(`{"op":"fill","in":[1],"out":[["float32",[4194304]]]},{"op":"neg","in":[["t0",[512,4194304],[0,1],0]],"out":[["float32",[512,4194304]]]}`)), "2147483648 elements, made of fewer than"},
	} {
		text := `{"format":"tracediff program","version":1,` + c.text + `}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		p, err := recorded.Read(strings.NewReader(text))
		said := ""
		if err == nil {
			var passes [][]recorded.Entry
			if passes, err = p.Entries(); err == nil {
				for _, e := range passes[0] {
					if o, ok := e.Op.(recorded.Unknown); ok {
						said = o.Why
					}
				}
			}
		}
		runtime.ReadMemStats(&after)
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, c.want) || c.want == "" && said != "" || strings.Contains(said, "\n") {
			t.Errorf("%s: %q, want %q", c.why, said, c.want)
		}
		if made, took := after.TotalAlloc-before.TotalAlloc, time.Since(start); made > 400<<20 || took > muchLater {
			t.Errorf("%s: a file of %d bytes made %d MiB in %v", c.why, len(text), made>>20, took)
		}
	}
}
