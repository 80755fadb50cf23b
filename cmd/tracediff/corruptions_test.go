package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/fixtures/ondisk"
)

// sided says which of the two files is corrupted.
type sided string

const (
	onLocal     sided = "local"
	onReference sided = "reference"
	onBoth      sided = "both"
)

// The ways in which a pair is compared: with the checkpoint, so that every entry is computed from its own inputs; with the
// checkpoint for the limits alone; and two files and nothing else.
const (
	withModel  = "with the model"
	noIsolates = "--no-isolate"
	twoFiles   = "two files"
)

// equalByLogic are the corruptions that may exit 0, and have to: the traces say what they said. An empty side or use is any.
// Everything else has to exit with 1 or 2.
var equalByLogic = []struct {
	kind   string
	side   sided
	use    string
	reason string
}{
	{kind: "a comment in the metadata", reason: "a key without the prefix tracediff. belongs to whoever wrote it, and nothing reads it"},
	{kind: "another device, model name and prompt", reason: "these are for people: the text of a prompt never gates, its ids do"},
	{kind: "no sequence declared, alphabetical", reason: "a file that claims no order is not trusted for one; the order is the configuration's, and keys say the pass"},
	{kind: "a derived tensor wrong", reason: "the capturing side computed it by the order's own operation: no engine fired it, nothing is computed from it, it never gates"},
	{kind: "up before gate", reason: "neither is computed from the other: an engine may run them in any order"},
	{kind: "the last pass is not there, nor declared", side: onBoth, reason: "both are whole traces of a run that is one step shorter"},
	{kind: "no metadata at all", use: withModel, reason: "a file of another writer that has all tensors of the model's order, each equal and right"},
	{kind: "no metadata at all", use: noIsolates, reason: "a file of another writer that has all tensors of the model's order, each equal"},
	{kind: "no metadata at all", side: onLocal, use: twoFiles, reason: "a file of another writer that has all tensors of the order that the reference declares, each equal"},
	{kind: "no metadata at all", side: onReference, use: twoFiles, reason: "a file of another writer that has all tensors of the order that your port declares, each equal"},
	{kind: "dtype, ids as int32", reason: "the same whole numbers; the entry is an argument, which nothing computes in its dtype"},
	{kind: "dtype, one tensor as float64", reason: "a lossless change of the dtype of storage: the numbers are the same, and are numbers of the dtype that the order has"},
	{kind: "unknown tensor beside the others", reason: "a tensor of the port's own: nothing in scope is missing, and the report says that it is not compared"},
	{kind: "ring buffer", reason: "keys, values, scores and probabilities have their keys in one and the same order: slots of a ring buffer"},
}

// allowed is why a corruption may exit 0; empty if it may not.
func (c corruption) allowed() string {
	for _, e := range equalByLogic {
		if e.kind == c.kind.name && (e.side == "" || e.side == c.side) && (e.use == "" || e.use == c.use) {
			return e.reason
		}
	}
	return ""
}

// corruption is one run: a golden, what is done to it, on which side, and how the two files are compared.
type corruption struct {
	dir, golden string
	kind        *corruptionKind
	at          string
	side        sided
	use         string

	code   int
	report string
}

func (c *corruption) String() string {
	text := fmt.Sprintf("%s, %s, %s, %s/%s", c.kind.name, c.side, c.use, c.dir, c.golden)
	if c.at != "" {
		text += ", " + c.at
	}
	return text
}

// goldenOf reads a golden and takes it apart.
func goldenOf(t *testing.T, dir, name string) (data []byte, f *stFile) {
	t.Helper()
	data, err := fs.ReadFile(ondisk.Files(), "golden/"+dir+"/"+name)
	must(t, err)
	return data, readST(t, data)
}

// corrupted is the golden with the corruption, nil where it has nothing for this kind.
func (c *corruption) corrupted(t *testing.T) (data []byte) {
	t.Helper()
	golden, f := goldenOf(t, c.dir, c.golden)
	defer func() {
		if r := recover(); r != nil {
			if r != notHere {
				panic(fmt.Sprintf("%s: %v", c, r))
			}
			data = nil
		}
	}()
	c.kind.do(f, c.at)
	if data = f.bytes(); bytes.Equal(data, golden) || bytes.Equal(data, readST(t, golden).bytes()) {
		return nil
	}
	return data
}

// run compares the two files in this process, in a folder of its own.
func (c *corruption) run(dir string, golden, corrupted []byte) error {
	local, reference := filepath.Join(dir, "local.safetensors"), filepath.Join(dir, "reference.safetensors")
	for path, wrong := range map[string]bool{local: c.side != onReference, reference: c.side != onLocal} {
		content := golden
		if wrong {
			content = corrupted
		}
		if err := os.WriteFile(path, content, 0o666); err != nil {
			return err
		}
	}
	args := []string{"tracediff", "compare", local, reference, "--dir", filepath.Join(dir, "traces")}
	model := []string{"--model", "../../fixtures/" + c.dir}
	switch c.use {
	case withModel:
		args = append(args, model...)
	case noIsolates:
		args = append(append(args, model...), "--no-isolate")
	}
	var out, errOut bytes.Buffer
	c.code = run(args, nil, &out, &errOut)
	c.report = out.String() + errOut.String()
	return nil
}

// goldenFiles lists the goldens of every family.
func goldenFiles(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	paths, err := fs.Glob(ondisk.Files(), "golden/*/*.safetensors")
	must(t, err)
	for _, path := range paths {
		dir := filepath.Base(filepath.Dir(path))
		all[dir] = append(all[dir], filepath.Base(path))
	}
	if len(all) < 10 {
		t.Fatalf("goldens of %d families", len(all))
	}
	return all
}

func allKinds() []corruptionKind {
	return slices.Concat(kindsOfValues, kindsOfOneToken, kindsOfShapes, kindsOfManifests, kindsWithoutHarm)
}

// planned are the corruptions of kind k in the folder d: of one golden, on every side, and where one tensor is corrupted, of
// one tensor, which differs from folder to folder.
func planned(t *testing.T, k, d int, kind *corruptionKind, dir string, names []string) []*corruption {
	t.Helper()
	var fit []string
	for _, name := range names {
		decodes := strings.HasPrefix(name, "decode")
		single := strings.HasPrefix(name, "what") // of one token: much of it is constant as it should be
		if decodes == (kind.decode || (k+d)%5 == 4 && kind.at == nil) && single == kind.single {
			fit = append(fit, name)
		}
	}
	if strings.Contains(kind.name, "rounded to") { // from a wider dtype
		fit = slices.DeleteFunc(fit, func(name string) bool { return !strings.Contains(name, "float32") })
	}
	if len(fit) == 0 {
		return nil
	}
	name := fit[(k/2+d)%len(fit)]
	c := corruption{dir: dir, golden: name, kind: kind}
	if len(kind.at) > 0 {
		_, f := goldenOf(t, dir, name)
		var there []string
		for _, at := range kind.at {
			if slices.ContainsFunc(f.tensors, func(t *stTensor) bool {
				return t.Key == at || strings.HasSuffix(at, ".") && strings.HasPrefix(t.Key, at)
			}) {
				there = append(there, at)
			}
		}
		if len(there) == 0 {
			return nil
		}
		c.at = there[(k+d)%len(there)]
	}
	var all []*corruption
	add := func(side sided, use string) {
		each := c
		each.side, each.use = side, use
		all = append(all, &each)
	}
	uses := []string{withModel, noIsolates}
	if kind.typed {
		uses = append(uses, twoFiles)
	}
	add(onLocal, uses[(k+d)%len(uses)])
	add(onReference, uses[(k+d+1)%len(uses)])
	add(onBoth, withModel)
	for _, use := range uses[1:] {
		if kind.typed {
			add(onBoth, use)
		}
	}
	return all
}

// sample is what the default run takes of a kind: one side and one use, which differ from kind to kind.
func sample(k int, all []*corruption) []*corruption { return all[k%len(all):][:1] }

// familiesEach is in how many families a kind is tried; which ones differs from kind to kind.
const familiesEach = 2

// allCorruptions reports whether somebody asked for all of them, and not for the sample of the default run.
func allCorruptions() bool { return os.Getenv("TRACEDIFF_CORRUPTIONS") == "all" }

// No corruption of a golden is taken for a match, on either side or on both, with the model and without, but those that leave
// what the trace says as it was, and these are. TRACEDIFF_CORRUPTIONS=all runs all of them, of every family.
func TestCorruptions(t *testing.T) {
	t.Parallel()
	whole := allCorruptions()
	all := goldenFiles(t)
	dirs := slices.Sorted(func(yield func(string) bool) {
		for dir := range all {
			if !yield(dir) {
				return
			}
		}
	})
	kinds := allKinds()
	var runs []*corruption
	for k := range kinds {
		taken := 0
		for n := range dirs {
			d := (n + k) % len(dirs)
			if taken == familiesEach {
				break
			}
			if large := len(all[dirs[d]]) > 4; !whole && large && k%8 != 0 && !kinds[k].single { // the large ones take most of the time
				continue
			}
			some := planned(t, k, d, &kinds[k], dirs[d], all[dirs[d]])
			if len(some) == 0 || some[0].corrupted(t) == nil {
				continue
			}
			taken++
			if whole {
				runs = append(runs, some...)
				continue
			}
			runs = append(runs, sample(k, some)...)
			break
		}
		if taken == 0 {
			t.Errorf("%s: no golden has anything for it", kinds[k].name)
		}
	}
	if most := 300; whole && len(runs) < most || len(runs) < 60 {
		t.Errorf("%d corruptions", len(runs))
	}
	for _, dir := range dirs {
		if whole && !slices.ContainsFunc(runs, func(c *corruption) bool { return c.dir == dir }) {
			t.Errorf("no corruption of %s", dir)
		}
	}
	runAll(t, runs)
	judgeAll(t, runs)
	t.Log(tableOf(runs))
}

// runAll runs two at a time at most.
func runAll(t *testing.T, runs []*corruption) {
	t.Helper()
	type pair struct {
		c                 *corruption
		golden, corrupted []byte
	}
	queue := make(chan pair)
	var wait sync.WaitGroup
	for range min(2, runtime.GOMAXPROCS(0)) {
		dir := t.TempDir()
		wait.Go(func() {
			for p := range queue {
				if err := p.c.run(dir, p.golden, p.corrupted); err != nil {
					t.Errorf("%s: %v", p.c, err)
				}
			}
		})
	}
	for _, c := range runs {
		golden, _ := goldenOf(t, c.dir, c.golden)
		queue <- pair{c, golden, c.corrupted(t)}
	}
	close(queue)
	wait.Wait()
}

// judgeAll holds each to what it has to be.
func judgeAll(t *testing.T, runs []*corruption) {
	t.Helper()
	for _, c := range runs {
		reason := c.allowed()
		switch {
		case c.code == exitMatch && reason == "":
			t.Errorf("MATCH: %s\n%s", c, lastLines(c.report))
		case c.code != exitMatch && reason != "":
			t.Errorf("exit %d: %s: %s\n%s", c.code, c, reason, lastLines(c.report))
		case c.code != exitMatch && c.code != exitMismatch && c.code != exitUnusable:
			t.Errorf("exit %d: %s", c.code, c)
		}
	}
}

// lastLines is the end of a report, in few lines.
func lastLines(report string) string {
	lines := strings.Split(strings.TrimSpace(report), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "\n")
}

// tableOf counts the exits by kind and side.
func tableOf(runs []*corruption) string {
	counts := map[string]*[3][3]int{}
	var names []string
	for _, c := range runs {
		if counts[c.kind.name] == nil {
			counts[c.kind.name] = new([3][3]int)
			names = append(names, c.kind.name)
		}
		side := slices.Index([]sided{onLocal, onReference, onBoth}, c.side)
		counts[c.kind.name][side][min(c.code, 2)]++
	}
	var b strings.Builder
	total := [3]int{}
	fmt.Fprintf(&b, "exits 0/1/2\n%-42s %10s %10s %10s\n", "kind", onLocal, onReference, onBoth)
	for _, name := range names {
		fmt.Fprintf(&b, "%-42s", name)
		for _, n := range counts[name] {
			fmt.Fprintf(&b, " %10s", fmt.Sprintf("%d/%d/%d", n[0], n[1], n[2]))
			for code, n := range n {
				total[code] += n
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d corruptions of %d kinds: %d exit 0, %d exit 1, %d exit 2", len(runs), len(names), total[0], total[1], total[2])
	return b.String()
}

// Every golden equals itself, also those of a single token, in which much is constant as the order has it.
func TestGoldensMatchThemselves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for family, names := range goldenFiles(t) {
		for i, name := range names {
			if single := strings.HasPrefix(name, "what"); !allCorruptions() && !single && (i+len(family))%4 != 0 {
				continue
			}
			data, f := goldenOf(t, family, name)
			if i%2 == 0 { // put together again by what corrupts: that alone changes nothing
				data = f.bytes()
			}
			for _, use := range []string{withModel, noIsolates, twoFiles} {
				c := corruption{dir: family, golden: name, kind: &corruptionKind{name: "none"}, side: onBoth, use: use}
				must(t, c.run(dir, data, data))
				if c.code != exitMatch {
					t.Errorf("exit %d: %s\n%s", c.code, &c, lastLines(c.report))
				}
			}
		}
	}
}
