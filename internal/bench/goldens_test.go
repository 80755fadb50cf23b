package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/compare/diagnose"
)

// storedGoldens are those of the repository.
func storedGoldens(t *testing.T) goldens {
	t.Helper()
	g, err := readGoldens("../../" + goldensPath)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The goldens have every fault of the halves that were measured and none of a later one, in what a repository can hold. The sample has every class of edits
// and every status, is a sixth of all by the time that it took, and is drawn alike each time.
func TestGoldensAreWhole(t *testing.T) {
	info, err := os.Stat("../../" + goldensPath)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 512<<10 {
		t.Errorf("%d bytes", info.Size())
	}
	g := storedGoldens(t)
	m := map[string]bool{}
	for _, l := range g {
		what, _, _ := strings.Cut(l.Run, ".")
		for _, of := range strings.Split(what, "+") {
			m[of] = true
		}
		if l.Verdict == string(unread) && l.Without == "" {
			t.Errorf("nobody has read %s", l)
		}
	}
	earlier := plantedFaults(t, false)
	for name := range plantedFaults(t, true) {
		if m[name] != earlier[name] {
			t.Errorf("the goldens have %s: %t", name, m[name])
		}
	}
	drawn := g.drawn()
	if diff := cmp.Diff(drawn, storedGoldens(t).drawn()); diff != "" {
		t.Error(diff)
	}
	all, some, took, of := map[string]bool{}, map[string]bool{}, 0, 0
	for _, l := range g {
		have := l.Class
		if l.Role == "" {
			have, of = l.Status, of+l.took()
		}
		if all[have] = true; !drawn[l.Run] {
			continue
		}
		if some[have] = true; l.Role == "" {
			took += l.took()
		}
	}
	if diff := cmp.Diff(all, some); diff != "" {
		t.Errorf("the sample lacks:\n%s", diff)
	}
	if part := float64(took) / float64(of); part < 0.15 || part > 0.19 {
		t.Errorf("the sample took %.3f of the time of all", part)
	}
}

// keptLines are the lines of the runs that are kept in fixtures/bench.
func keptLines(t *testing.T) goldens {
	t.Helper()
	was, _ := changed(t, "", nil)
	return was
}

// Lines are read as they were written, whatever a sentence has in it.
func TestGoldensAreRead(t *testing.T) {
	g := keptLines(t)
	g[0].Words = "a | b | | c"
	data, err := g.encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "goldens.txt.gz")
	write := func(data []byte) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(data)
	read, err := readGoldens(path)
	if err != nil {
		t.Fatal(err)
	}
	for k := range g {
		if g[k].String() != read[k].String() {
			t.Errorf("%s was read as %s", g[k], read[k])
		}
	}
	if len(read) != len(g) {
		t.Errorf("%d lines, not %d", len(read), len(g))
	}
	for what, bad := range map[string]goldens{
		"twice there is": {g[1], g[1]},
		"cells, not":     {line{Words: "a\nfew | cells"}},
	} {
		data, err := bad.encode()
		if err != nil {
			t.Fatal(err)
		}
		if write(data); true {
			if _, err := readGoldens(path); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%v, want %q", err, what)
			}
		}
	}
	write(data[:len(data)/2])
	if _, err := readGoldens(path); err == nil {
		t.Error("half of the file was read")
	}
}

// Runs of fixtures/bench that tests change: one with a number in its names, which says by itself that they are right, and one without.
const (
	withNumber    = "norm-eps-of-heads.float32.transformers"
	withoutNumber = "norm-over-all-heads.float32.transformers"
)

// changed are the lines of the kept runs as they are, and after a change of one run at level 3 and its first name.
func changed(t *testing.T, name string, change func(r *result, n *named)) (was, is goldens) {
	t.Helper()
	results := kept(t)
	read, err := parseReadings(readNames)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	var again []result
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	for k := range again {
		again[k].run = results[k].run
		if r := &again[k]; r.Run == name && r.Level == 3 {
			change(r, &r.Names[0])
		}
	}
	judged(again, read)
	traces, err := digests("../../fixtures/bench", results)
	if err != nil {
		t.Fatal(err)
	}
	return linesOf(results, traces), linesOf(again, traces)
}

// What is found may not change; how it is said may.
func TestDifference(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *result, n *named)
		fields []string // in which something is an error
		words  int
	}{
		{"nothing", func(*result, *named) {}, nil, 0},
		{"a place", func(_ *result, n *named) { n.At = "layers.2.self_attn.k_norm" }, []string{"located"}, 0},
		{"the place of the run", func(r *result, _ *named) { r.At = "pass1/" + r.At }, []string{"located"}, 0},
		{"another pass or layer", func(_ *result, n *named) { n.Finding.Where = "pass 1" }, []string{"place"}, 1},
		{"a class", func(_ *result, n *named) { n.Finding.Class = "inserted" }, []string{"class"}, 0},
		{"a step", func(_ *result, n *named) { n.Finding.Site = "rms_norm.mean" }, []string{"step"}, 0},
		{"the engine's number", func(_ *result, n *named) { n.Finding.Value = value(1.01 * *n.Finding.Value) }, []string{"numbers"}, 0},
		{"its fifth digit", func(_ *result, n *named) { n.Finding.Value = value(1.0001 * *n.Finding.Value) }, nil, 0},
		{"the model's number", func(_ *result, n *named) { n.Finding.Right = value(2 * *n.Finding.Right) }, []string{"numbers"}, 0},
		{"no number", func(_ *result, n *named) { n.Finding.Value = nil }, []string{"numbers"}, 0},
		{"a number in the sentence", func(_ *result, n *named) { n.Finding.What += " or 17" }, []string{"numbers"}, 1},
		{"a field of config.json", func(_ *result, n *named) { n.Finding.Fields[0].Name = "eps" }, []string{"config"}, 1},
		{"fewer entries", func(_ *result, n *named) { n.Finding.Entries-- }, []string{"proof"}, 0},
		{"an entry that is a match", func(_ *result, n *named) { n.Wrong-- }, []string{"proof"}, 0},
		{"no name", func(_ *result, n *named) { n.Finding = &diagnose.Finding{Tried: 7} }, []string{"class", "config", "numbers", "proof", "status", "step"}, 1},
		{"several names", func(_ *result, n *named) {
			n.Finding.What, n.Finding.Undecided = "", []diagnose.OtherName{{Name: diagnose.Name{What: "one"}}, {Name: diagnose.Name{What: "two"}}}
		}, []string{"numbers", "status"}, 1},
		{"a role less", func(r *result, _ *named) { r.Names = r.Names[1:] }, []string{"proof", "status"}, 0},
		{"a role more", func(r *result, n *named) { r.Names = append(r.Names, named{Role: "logits"}) }, []string{"status"}, 0},
		{"not located", func(r *result, _ *named) { r.Located = false }, []string{"status"}, 0},
		{"a healthy entry accused", func(r *result, _ *named) { r.Accused = append(r.Accused, "logits") }, []string{"proof", "status"}, 0},
		{"the sentence", func(_ *result, n *named) { n.Finding.What = "the " + n.Finding.What }, nil, 1},
		{"another name of the same values", func(_ *result, n *named) {
			n.Finding.Aliases = []diagnose.OtherName{{Name: diagnose.Name{What: "another"}}}
		}, nil, 1},
		{"time", func(r *result, n *named) { r.Took, n.Effort.Took = 100*r.Took, 100*n.Effort.Took }, nil, 0},
	} {
		d := differenceOf(changed(t, withNumber, c.change))
		var fields []string
		for name := range d.errors {
			fields = append(fields, name)
		}
		slices.Sort(fields)
		words := 0
		for _, keys := range d.words {
			words += len(keys)
		}
		if !slices.Equal(fields, c.fields) || words != c.words {
			t.Errorf("%s: errors in %q, and %d lines in other words; want %q and %d", c.name, fields, words, c.fields, c.words)
		}
		if got := d.err() != nil; got != (len(c.fields) > 0) {
			t.Errorf("%s: an error: %t", c.name, got)
		}
	}
	was, is := changed(t, withNumber, func(*result, *named) {})
	is[0].Trace = "00000000"
	d := differenceOf(was, is)
	var out strings.Builder
	if d.print(&out); d.err() == nil || !strings.HasPrefix(out.String(), "1 traces have other bits") {
		t.Errorf("a trace has other bits: %v\n%s", d.err(), out.String())
	}
}

// A name in other words keeps the verdict of the words before. That of another mistake has none.
func TestVerdictsGoWithMistakes(t *testing.T) {
	was, is := changed(t, withoutNumber, func(_ *result, n *named) { n.Finding.What, n.Finding.Mistake.Kind = "the "+n.Finding.What, "axis.both" })
	d := differenceOf(was, is)
	if len(d.carried) != 1 || d.carried[0].verdict != right || d.carried[0].fault != "norm-over-all-heads" || !strings.HasPrefix(d.carried[0].key, "axis.both(") {
		t.Errorf("carried: %q", d.carried)
	}
	if d.is.named != d.was.named || d.is.unread != d.was.unread || d.is.asked != d.was.asked {
		t.Errorf("counts are %+v, and were %+v", d.is, d.was)
	}
	read, err := parseReadings(listing(readNames, d.carried))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range is {
		if l.finding == nil || l.Verdict != string(unread) {
			continue
		}
		if v := read.judge(l.of, l.finding); v != right {
			t.Errorf("%s is %s", l, v)
		}
	}
	d = differenceOf(changed(t, withoutNumber, func(_ *result, n *named) {
		n.Finding.What, n.Finding.Mistake.Kind, n.Finding.Class = "the "+n.Finding.What, "axis.both", "inserted"
	}))
	if len(d.carried) > 0 || d.is.unread != d.was.unread+1 || d.is.named != d.was.named-1 {
		t.Errorf("carried: %q", d.carried)
	}
}

// Searches may try a twentieth more by their median and their 90 %, and no more of them may end at their budget.
func TestWorkOfSearches(t *testing.T) {
	was := keptLines(t)
	times := func(factor float64, stopped string) *difference {
		is := slices.Clone(was)
		for k := range is {
			if n, _, ok := is[k].tried(); ok {
				_, end, _ := strings.Cut(is[k].Tried, " ")
				is[k].Tried = strings.TrimSpace(number(float64(int(factor*float64(n)))) + " " + end)
				if k == len(is)-1 || stopped != "" && end == "" {
					is[k].Tried, stopped = strings.TrimSpace(is[k].Tried+" "+stopped), ""
				}
			}
		}
		return differenceOf(was, is)
	}
	for _, c := range []struct {
		factor  float64
		stopped string
		moved   bool
	}{{1, "", false}, {1.03, "", false}, {0.5, "", false}, {1.1, "", true}, {1, "stopped", true}} {
		if d := times(c.factor, c.stopped); d.moved() != c.moved || (d.err() != nil) != c.moved {
			t.Errorf("%g times, %q: moved: %t", c.factor, c.stopped, d.moved())
		}
	}
}

// Changes that are alike are printed once, with all lines that have them; of words three are.
func TestDifferenceIsPrinted(t *testing.T) {
	key := func(run string) line { return line{Run: run, Level: "3", Role: "logits", Status: "named"} }
	var was, is goldens
	for _, run := range []string{"a", "b", "c", "d"} {
		before, after := key(run), key(run)
		before.Class, after.Class, before.Words, after.Words = "constant", "scaled", "half of it", "a half"
		was, is = append(was, before), append(is, after)
	}
	var out strings.Builder
	d := differenceOf(was, is)
	d.print(&out)
	want := `class: 4 lines
  - constant
  + scaled
      a at level 3: logits
      b at level 3: logits
      c at level 3: logits
      d at level 3: logits
words: 4 lines
  - half of it
  + a half
      a at level 3: logits
      b at level 3: logits
      c at level 3: logits
      and 1 more
`
	if got, _, _ := strings.Cut(out.String(), "  "+strings.Repeat(" ", 41)); !strings.HasPrefix(out.String(), want) {
		t.Error(cmp.Diff(want, got))
	}
}

// Goldens have no run of a half after the fifth, and no healthy run that only such a half needs.
func TestRunsOfGoldens(t *testing.T) {
	runs := []run{
		{Name: "early", Half: 1, Reference: "p"},
		{Name: "late", Half: lastGolden + 1, Reference: "q"},
		{Name: "p", Reference: "p"},
		{Name: "p.primitives", Reference: "p"},
		{Name: "q", Reference: "q"},
		{Name: "both", Half: lastGolden + 1, Reference: "p"},
	}
	var names []string
	for _, r := range ofGoldens(runs) {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"early", "p", "p.primitives"}, names); diff != "" {
		t.Error(diff)
	}
}

// What was found of some runs is written, and is read with them: the others are left, and the results are in the order of the runs.
func TestRunsThatAreLeft(t *testing.T) {
	m := made{Runs: []run{{Name: "a", Half: 1}, {Name: "b", Half: 2}, {Name: "c", Half: 3}}}
	f := found{Results: []result{{Run: "c", Level: 3}, {Run: "c", Level: 2}, {Run: "a", Level: 3}, {Run: "a", Level: 2}}}
	path := filepath.Join(t.TempDir(), "found.json")
	f.sort(m.Runs)
	if err := f.write(path); err != nil {
		t.Fatal(err)
	}
	var again found
	if err := again.read(path, m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range again.Results {
		r := &again.Results[i]
		got = append(got, fmt.Sprint(r.Run, r.Level, " of half ", r.Half))
	}
	if diff := cmp.Diff([]string{"a3 of half 1", "a2 of half 1", "c3 of half 3", "c2 of half 3"}, got); diff != "" {
		t.Error(diff)
	}
	if left := again.left(m.Runs); len(left) != 1 || left[0].Name != "b" {
		t.Errorf("left: %v", left)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// The digest of a trace is that of its tensors: a header of another machine is no difference, and a bit is one.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	of := func(header, data string) string {
		path := filepath.Join(dir, "trace")
		if err := os.WriteFile(path, []byte(string(rune(len(header)))+strings.Repeat("\x00", 7)+header+data), 0o666); err != nil {
			t.Fatal(err)
		}
		sum, err := digest(path)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if a, b := of("{ }", "data"), of("{  }", "data"); a != b || len(a) != 8 {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := of("{ }", "data"), of("{ }", "dat`"); a == b {
		t.Errorf("%q twice", a)
	}
	path := filepath.Join(dir, "trace")
	for _, bad := range []string{"", "\x01", strings.Repeat("\xff", 8)} {
		if err := os.WriteFile(path, []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		if sum, err := digest(path); err == nil {
			t.Errorf("%q has the digest %q", bad, sum)
		}
	}
}
func value(v float64) *float64 { return &v }
