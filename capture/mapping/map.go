package mapping

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/tomlfile"
)

// Map translates the names and layouts of a dump into the names and layouts of TENSOR_ORDER.
type Map struct {
	name    string
	tensors []*rule
	weights []*rule
	models  map[string][]*rule // further lines of [tensors], by model_type
	fused   []string
}

// MaxSize bounds a map's file, in bytes, and MaxRules the lines of each of its tables.
const (
	MaxSize  = 1 << 20
	MaxRules = 1 << 12
)

const oneLine = "a capture such as {L} gives one line for all layers"

// Tables are a map within another TOML file.
type Tables struct {
	Tensors map[string]any `toml:"tensors"`
	Weights map[string]any `toml:"weights"` // of the checkpoint, in the same words
	// Models has further lines by the model_type of the model: [model.llama.tensors].
	Models map[string]Lines `toml:"model"`
	// Fused are the engine's modules with fused attention, as paths or patterns such as "*.self_attn". The dump declares no
	// entry inside a fused module.
	Fused []string `toml:"fused"`
}

// Parse reads a map. name is the name of its file, for errors and notes. Errors name the line.
func Parse(name string, data []byte) (*Map, error) {
	if n := bytes.Count(data, []byte("=")); n > 3*MaxRules { // the time of reading TOML grows with the square of the number of keys
		return nil, hint.Add(fmt.Errorf("%s: %d keys: %d are allowed", name, n, 3*MaxRules), oneLine)
	}
	var t Tables
	if err := tomlfile.Decode(data, &t); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m, err := New(name, t, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// New reads the tables of a map out of a file with the text data. name is the file name, for the prefix of error messages.
func New(name string, t Tables, data []byte) (*Map, error) {
	m := &Map{name: name, fused: t.Fused}
	for _, pattern := range t.Fused {
		if err := hooks.CheckPattern(pattern); err != nil || pattern == "" {
			return nil, hint.Add(cmp.Or(err, errors.New("an empty pattern")), `fused = ["*.self_attn"] says that attention is one kernel in all layers`)
		}
	}
	var err error
	if m.tensors, err = newRules("tensors", t.Tensors, data, nil); err != nil {
		return nil, err
	}
	if m.weights, err = newRules("weights", t.Weights, data, nil); err != nil {
		return nil, err
	}
	if err := checkModels(t); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		rules, err := newRules("model."+name+".tensors", t.Models[name].Tensors, data, t.Tensors)
		if err != nil {
			return nil, err
		}
		if m.models == nil {
			m.models = map[string][]*rule{}
		}
		m.models[name] = rules
	}
	switch {
	case len(m.tensors)+len(m.weights)+len(m.models)+len(m.fused) > 0:
	case commentText.Match(data):
		return nil, hint.Add(errors.New("all lines of the map are comments"), "remove the # of one line of each choice")
	case !headed(data): // an empty table is a map without changes
		return nil, hint.Add(errors.New("the map is empty"), "write a table [tensors] with lines such as \"blk.{L}.attn_norm\" = \"layers.{L}.input_layernorm\"; compare a dump that needs no map without --map")
	}
	return m, nil
}

// newRules reads the lines of a table and sorts the lines by their place in the file. The last parameter has further lines for the same tensors.
func newRules(heading string, table map[string]any, data []byte, beside map[string]any) (rules []*rule, err error) {
	if n := len(table) + len(beside); n > MaxRules {
		return nil, hint.Add(fmt.Errorf("%d lines in [%s]: %d are allowed", n, heading, MaxRules), oneLine)
	}
	lines, weights := linesOf(data, heading), heading == "weights"
	for pattern, value := range table {
		r, err := newRule(pattern, value)
		switch {
		case err == nil && r.folded && !weights:
			err = errors.New("folded is for [weights]: the result of a norm is the same whether a file has 1+w or w")
		case err == nil && (r.ring != "" || r.pass != nil || r.last || r.by != "" || r.unless != nil) && weights:
			err = errors.New("ring, pass, rows, by and unless are for [tensors]: a weight has none of them")
		case err == nil && beside[pattern] != nil:
			err = fmt.Errorf("[tensors] and [%s] both have a line with this pattern", heading)
		}
		if err != nil {
			return nil, hint.Add(fmt.Errorf("%s: %w", place(lines[pattern], pattern), err), "docs/ports.md has every word of a map")
		}
		r.line = lines[pattern]
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b *rule) int {
		return cmp.Or(a.line-b.line, strings.Compare(a.from.text, b.from.text))
	})
	return rules, nil
}

// Matches reports whether a line of the map matches a tensor of a trace.
func (m *Map) Matches(t *capture.Trace) bool {
	return slices.ContainsFunc(t.Records(), func(r capture.Record) bool {
		matches := func(l *rule) bool { _, ok := l.from.of(r.Name); return ok }
		for _, rules := range m.models {
			if slices.ContainsFunc(rules, matches) {
				return true
			}
		}
		return slices.ContainsFunc(m.tensors, matches)
	})
}

// String is the map as one text. Two maps with the same lines have the same text.
func (m *Map) String() string {
	var b strings.Builder
	if len(m.fused) > 0 {
		fmt.Fprintf(&b, "fused = %q\n", m.fused)
	}
	write := func(rules []*rule) {
		for _, r := range rules {
			var to []string
			for _, t := range r.to {
				to = append(to, t.text)
			}
			fmt.Fprintf(&b, "%q = %q%s\n", r.from.text, to, r.words())
		}
		b.WriteByte('\n')
	}
	write(m.tensors)
	write(m.weights)
	for _, name := range slices.Sorted(maps.Keys(m.models)) {
		fmt.Fprintf(&b, "%s:\n", name)
		write(m.models[name])
	}
	return b.String()
}

// maxShown is the number of bytes of a pattern in an error.
const maxShown = 256

// place names a rule in an error.
func place(line int, pattern string) string {
	if len(pattern) > maxShown {
		pattern = pattern[:maxShown] + "..."
	}
	if line == 0 {
		return fmt.Sprintf("%q", pattern)
	}
	return fmt.Sprintf("line %d, %q", line, pattern)
}

func (m *Map) at(r *rule) string { return m.name + ": " + place(r.line, r.from.text) }

var (
	headingText = regexp.MustCompile(`^\s*\[+\s*([^\]]*?)\s*\]`)
	commentText = regexp.MustCompile(`(?m)^\s*#+\s*["'].*["']\s*=`)
	keyText     = regexp.MustCompile(`^\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*[.=]`) // for a dotted key, only the first part
)

// headed reports whether a text has the heading of one of the tables.
func headed(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		if m := headingText.FindStringSubmatch(line); m != nil && slices.Contains([]string{"tensors", "weights"}, m[1][strings.LastIndex(m[1], ".")+1:]) {
			return true
		}
	}
	return false
}

// linesOf returns, for each key of a table, the number of its line in the file. In tracediff.toml the table is inside the table
// [map].
func linesOf(data []byte, heading string) map[string]int {
	lines := map[string]int{}
	inside := false
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		if m := headingText.FindStringSubmatch(line); m != nil {
			inside = strings.TrimPrefix(strings.ReplaceAll(strings.ReplaceAll(m[1], " ", ""), `"`, ""), "map.") == heading
			continue
		}
		m := keyText.FindStringSubmatch(line)
		if !inside || m == nil {
			continue
		}
		key := m[1]
		switch key[0] {
		case '"':
			if text, err := strconv.Unquote(key); err == nil {
				key = text
			}
		case '\'':
			key = key[1 : len(key)-1]
		}
		if lines[key] == 0 {
			lines[key] = number
		}
	}
	return lines
}
