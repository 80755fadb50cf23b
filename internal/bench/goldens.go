package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracediff/tracediff/compare/diagnose"
)

// goldensPath is the file of the goldens: the findings when the goldens were last written. Each run has a line for each level, and a line for
// each role of entries without a match. The 16,700 lines have 4.2 MB, which gzip makes 13 times smaller.
const goldensPath = "internal/bench/testdata/goldens.txt.gz"

// maxGoldens is the most bytes that are read of goldens.
const maxGoldens = 64 << 20

// lastGolden is the last half that goldens have.
const lastGolden = 10

// line is what is found of the entries of a role, or without a role of a run, at a level. Its cells are text, and are compared as such.
type line struct {
	// The key: the name of the run, which is "fault.dtype.arithmetic"; the level; the role, empty for the run itself; and whether the
	// class of the name was not tried, which is then here.
	Run, Level, Role, Without string

	Trace   string // the digest of what the run has computed; empty of a role
	At      string // located: the key of the first entry that does not match
	Status  string // "named", "likely", "undecided", "unnamed"; of a run what it shows
	Class   string // of the edit
	Step    string
	Where   string // the layers and passes that have it, where others are right
	Numbers string // the engine's number, the model's, and those of the sentence in ascending order
	Config  string // the fields of the configuration that have these numbers
	Proof   string // how many entries do not match; of a name the entries and elements that it gives, and the elements that the right operation does not
	Tried   string // hypotheses; " stopped" follows where the search ended at its budget
	Took    string // milliseconds: of a role its searches, of a run all that was done
	Verdict string // see verdict
	Words   string // the sentence, other names of the same values, and the nearest mistake where there is no name

	of      []fault           // of what was found now; nil of a line that was read
	finding *diagnose.Finding // likewise
}

// cells are the parts of a line in the order in which they are written. Words are last, since they may have any character.
func (l *line) cells() []*string {
	return []*string{
		&l.Run, &l.Level, &l.Role, &l.Without, &l.Trace, &l.At, &l.Status, &l.Class, &l.Step, &l.Where, &l.Numbers, &l.Config, &l.Proof,
		&l.Tried, &l.Took, &l.Verdict, &l.Words,
	}
}

const cellsEnd = " | "

func (l line) String() string {
	var cells []string
	for _, c := range l.cells() {
		cells = append(cells, *c)
	}
	return strings.Join(cells, cellsEnd)
}

func parseLine(text string) (l line, err error) {
	cells := l.cells()
	parts := strings.SplitN(text, cellsEnd, len(cells))
	if len(parts) < len(cells) {
		return l, fmt.Errorf("%d cells, not %d: %q", len(parts), len(cells), text)
	}
	for k, part := range parts {
		*cells[k] = part
	}
	return l, nil
}

// key is what a line is about.
func (l line) key() string {
	key := fmt.Sprintf("%s at level %s", l.Run, l.Level)
	if l.Role != "" {
		key += ": " + l.Role
	}
	if l.Without != "" {
		key += ", the class of its name not tried"
	}
	return key
}

// took are the milliseconds of a line.
func (l line) took() int {
	n, _ := strconv.Atoi(l.Took)
	return n
}

// tried are the hypotheses of a line, and whether a search ended at its budget. Lines of runs have none.
func (l line) tried() (n int, stopped, ok bool) {
	text, stopped := strings.CutSuffix(l.Tried, " stopped")
	n, err := strconv.Atoi(text)
	return n, stopped, err == nil
}

// linesOf are the lines of results that were judged, with the digests of their traces.
func linesOf(results []result, digests map[string]string) (all []line) {
	for i := range results {
		r := &results[i]
		head := line{Run: r.Run, Level: strconv.Itoa(r.Level), of: r.Faults}
		wrong := len(r.Accused)
		for _, n := range r.Names {
			wrong += n.Wrong
		}
		own := head
		own.Trace = digests[r.Run]
		own.At, own.Status, own.Proof, own.Took, own.Words = r.At, r.shows(), wrongEntries(wrong), milliseconds(r.Took), r.proofWords()
		all = append(all, own)
		for _, n := range r.Names {
			l := head
			l.Role, l.At = n.Role, n.At
			l.found(n.Finding, n.Wrong, n.Effort, n.verdict)
			if all = append(all, l); !n.Asked {
				continue
			}
			other := head
			other.Role, other.At, other.Without = n.Role, n.At, n.Finding.Class
			other.found(n.Other, n.Wrong, n.OtherEffort, n.otherVerdict)
			all = append(all, other)
		}
	}
	return all
}

// shows is what a run shows, without a judgement of its names.
func (r *result) shows() string {
	var all []string
	switch {
	case len(r.Faults) == 0:
		all = append(all, "healthy")
	case r.Invisible:
		all = append(all, "invisible")
	case r.ByLimits:
		all = append(all, "located by limits")
	case r.Located:
		all = append(all, "located")
	case r.isProven():
		all = append(all, "rounding")
	default:
		all = append(all, "not located")
	}
	if len(r.Accused) > 0 {
		all = append(all, "accuses "+strings.Join(r.Accused, " "))
	}
	if r.Silent {
		all = append(all, "matches transformers")
	}
	if r.Ties > 0 {
		all = append(all, fmt.Sprintf("%d ties", r.Ties))
	}
	return strings.Join(all, ", ")
}

// proofWords are the arithmetics that give a fault that a run cannot show.
func (r *result) proofWords() string {
	var all []string
	for _, p := range r.Proofs {
		all = append(all, cmp.Or(p.Arithmetic, "some choice of roundings"))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "; ")
}

// found fills what a search of some entries has found.
func (l *line) found(f *diagnose.Finding, wrong int, effort diagnose.Effort, v verdict) {
	l.Status, l.Verdict, l.Took, l.finding = "unnamed", string(v), milliseconds(effort.Took), f
	l.Proof = wrongEntries(wrong)
	l.Tried = strconv.Itoa(effort.Tried)
	if effort.Stopped {
		l.Tried += " stopped"
	}
	if f == nil {
		return
	}
	switch {
	case f.Named():
		l.Status = "named"
	case f.Likely != "":
		l.Status = "likely"
	case f.Explains():
		l.Status = "undecided"
	}
	l.Class, l.Step, l.Where, l.Numbers = f.Class, f.Site, f.Where, numbersOf(f)
	var fields []string
	for _, of := range slices.Concat(f.Fields, f.Equal) {
		fields = append(fields, of.Name+" "+number(of.Value))
	}
	l.Config = strings.Join(fields, ", ")
	if f.Explains() {
		l.Proof += fmt.Sprintf(" entries %d elements %d shown %d", f.Entries, f.Elements, f.Shown)
	}
	words := []string{f.Text()}
	for _, alias := range f.Aliases {
		words = append(words, "the same here: "+alias.Text())
	}
	if f.Nearest != "" {
		words = append(words, "nearest: "+f.Nearest)
	}
	l.Words = strings.Join(words, "; ")
}

var numeral = regexp.MustCompile(`-?\d+(\.\d+)?(e[+-]?\d+)?`)

// numbersOf are the numbers of a finding: "value 1e-05 right 1e-06 said 1e-05".
func numbersOf(f *diagnose.Finding) string {
	var parts []string
	if f.Value != nil {
		parts = append(parts, "value", number(*f.Value))
	}
	if f.Right != nil {
		parts = append(parts, "right", number(*f.Right))
	}
	var said []float64
	for _, text := range numeral.FindAllString(f.What, -1) {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			said = append(said, v)
		}
	}
	if slices.Sort(said); len(said) > 0 {
		parts = append(parts, "said")
		for _, v := range said {
			parts = append(parts, number(v))
		}
	}
	return strings.Join(parts, " ")
}

func wrongEntries(n int) string { return fmt.Sprintf("wrong %d", n) }

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// milliseconds has two digits: the others differ from one measurement to the next.
func milliseconds(d time.Duration) string {
	n, unit := d.Milliseconds(), int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return strconv.FormatInt((n+unit/2)/unit*unit, 10)
}

// ofGoldens are the runs that goldens have: those of the first halves, and the healthy ones of the same prompts.
func ofGoldens(runs []run) []run {
	prompts := map[string]bool{}
	for _, r := range runs {
		prompts[r.Reference] = prompts[r.Reference] || r.Half > 0 && r.Half <= lastGolden
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return r.Half > lastGolden || !prompts[r.Reference] })
}

// goldens are the lines of all runs.
type goldens []line

// encode is the content of a file of goldens: the same bytes for the same lines.
func (g goldens) encode() ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	for _, l := range g {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}

func readGoldens(path string) (g goldens, err error) {
	file, err := os.Open(path)
	if err != nil {
		return g, err
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		return g, fmt.Errorf("%s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxGoldens+1))
	if err == nil && len(text) > maxGoldens {
		err = errors.New("too large")
	}
	if err != nil {
		return g, fmt.Errorf("%s: %w", path, err)
	}
	keys := map[string]bool{}
	for row := range strings.Lines(string(text)) {
		l, err := parseLine(strings.TrimSuffix(row, "\n"))
		if err != nil {
			return g, fmt.Errorf("%s: %w", path, err)
		}
		if keys[l.key()] {
			return g, fmt.Errorf("%s: twice there is %s", path, l.key())
		}
		keys[l.key()] = true
		g = append(g, l)
	}
	return g, nil
}

// digest is that of the tensors of a trace. The header, which names the processor and the packages, is no part of it.
func digest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var header [8]byte
	if _, err := io.ReadFull(file, header[:]); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	size := binary.LittleEndian.Uint64(header[:])
	if size > math.MaxInt64-uint64(len(header)) {
		return "", fmt.Errorf("%s: a header of %d bytes", path, size)
	}
	if _, err := file.Seek(int64(size), io.SeekCurrent); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Sprintf("%.4x", hash.Sum(nil)), nil
}

// digests are those of the traces of results in a folder.
func digests(dir string, results []result) (map[string]string, error) {
	out := map[string]string{}
	for i := range results {
		name, err := results[i].Run, error(nil)
		if out[name] == "" {
			if out[name], err = digest(filepath.Join(dir, name+".safetensors")); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// of are the lines of some runs.
func (g goldens) of(runs map[string]bool) goldens {
	return slices.DeleteFunc(slices.Clone(g), func(l line) bool { return !runs[l.Run] })
}
