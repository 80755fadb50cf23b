package order

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// List is TENSOR_ORDER for one configuration, or a user's list of names.
type List struct {
	Config  *Config // nil for a user's list
	Entries []Entry
	index   map[string]int
	// passes are the entries of a recorded program, by pass and entry number, since a recorded program computes each
	// pass in its own way; nil for an entry that a pass does not have.
	passes [][]*Entry
}

// At returns an entry in its pass. If the list does not have the entry in this pass, At returns an entry with a bare
// name.
func (l *List) At(n Node) *Entry {
	e := &l.Entries[n.Entry]
	if l.passes == nil {
		return e
	}
	if n.Pass < len(l.passes) && l.passes[n.Pass][n.Entry] != nil {
		return l.passes[n.Pass][n.Entry]
	}
	return &Entry{Name: e.Name, Layer: e.Layer, Level: e.Level, Compare: e.Compare, HF: e.HF}
}

// InPasses returns an entry from every pass that has it; in a list without entries per pass, the result is the one
// entry.
func (l *List) InPasses(entry int) []*Entry {
	if l.passes == nil {
		return []*Entry{&l.Entries[entry]}
	}
	var all []*Entry
	for _, pass := range l.passes {
		if e := pass[entry]; e != nil {
			all = append(all, e)
		}
	}
	return all
}

// In reports whether a pass has an entry.
func (l *List) In(n Node) bool {
	return l.passes == nil || n.Pass < len(l.passes) && l.passes[n.Pass][n.Entry] != nil
}

// New returns the list of a configuration, or an error that wraps [ErrModelType] when its family is not known.
func New(c *Config) (*List, error) {
	fam, ok := families[c.ModelType]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrModelType, c.ModelType)
	}
	return fam.list(c), nil
}

func newList(c *Config, entries []Entry) *List {
	l := &List{Config: c, Entries: entries, index: make(map[string]int, len(entries))}
	for i, e := range entries {
		l.index[e.Name] = i
	}
	return l
}

// Lookup returns the entry of a name.
func (l *List) Lookup(name string) (*Entry, bool) {
	i, ok := l.index[name]
	if !ok {
		return nil, false
	}
	return &l.Entries[i], true
}

// Index returns the place of a name in the list, or −1.
func (l *List) Index(name string) int {
	if i, ok := l.index[name]; ok {
		return i
	}
	return -1
}

// Names returns the names in order.
func (l *List) Names() []string {
	names := make([]string, len(l.Entries))
	for i := range l.Entries {
		names[i] = l.Entries[i].Name
	}
	return names
}

// Weights returns every checkpoint tensor that an entry needs, each once, in order of first use.
func (l *List) Weights() []Weight {
	var ws []Weight
	seen := map[string]bool{}
	for _, e := range l.Entries {
		for _, w := range e.Weights {
			if !seen[w.Name] {
				seen[w.Name] = true
				ws = append(ws, w)
			}
		}
	}
	return ws
}

// FormatVersion is the version of the JSON that [List.MarshalJSON] writes.
const FormatVersion = 1

// MarshalJSON writes {"version", "config", "entries"}. Every entry has name, layer, level, op (its kind and
// constants), inputs, weights, shape (numbers, "T", "S.full", "S.sliding"), axes, and hf: where transformers shows it.
// This is what the transformers runner reads.
func (l *List) MarshalJSON() ([]byte, error) {
	out := struct {
		Version int             `json:"version"`
		Config  json.RawMessage `json:"config,omitempty"`
		Entries []Entry         `json:"entries"`
	}{Version: FormatVersion, Entries: l.Entries}
	if l.Config != nil {
		out.Config = l.Config.Canonical()
	}
	return json.Marshal(out)
}

// maxNames bounds a user's order file: ten times the names of the largest model.
const maxNames = 1 << 20

// ReadNames reads a user's order: one name a line; empty lines and lines that start with '#' do not count. The
// entries have only a name, so they give only the order of the walk: all elements are compared, and shapes are
// unknown. The error names the line.
func ReadNames(r io.Reader) (*List, error) {
	var entries []Entry
	seen := map[string]int{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		name := strings.TrimSpace(lines.Text())
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		switch first, dup := seen[name]; {
		case dup:
			return nil, fmt.Errorf("line %d: %q is there already, in line %d", n, name, first)
		case !utf8.ValidString(name) || strings.ContainsAny(name, "/# \t"):
			return nil, fmt.Errorf("line %d: %.60q is not a tensor name: one name a line, without spaces, '/' or '#'", n, name)
		case len(entries) == maxNames:
			return nil, fmt.Errorf("line %d: more than %d names", n, maxNames)
		}
		seen[name] = n
		entries = append(entries, Entry{Name: name, Layer: listedLayer(name), Level: 1})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", len(seen)+1, err)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("no names: want one tensor name a line")
	}
	return newList(nil, entries), nil
}

// Keep returns the list of some of l's entries.
func (l *List) Keep(kept []*Entry) *List {
	entries := make([]Entry, len(kept))
	for i, e := range kept {
		entries[i] = *e
	}
	k := newList(l.Config, entries)
	for _, all := range l.passes {
		pass := make([]*Entry, len(entries))
		for i := range entries {
			if at := l.Index(entries[i].Name); at >= 0 {
				pass[i] = all[at]
			}
		}
		k.passes = append(k.passes, pass)
	}
	return k
}

// InputIDs is the entry of the token ids, without which no two traces can be said to be of the same input.
const InputIDs = "input_ids"

// PositionIDs is the entry that says where in the sequence the tokens of a pass stand.
const PositionIDs = "position_ids"

// Pick returns the names of a user's list, in its order, each with what l knows of it; names that l does not have stay
// bare. The token ids come first where l has them and the list does not.
func (l *List) Pick(names *List) *List {
	var entries []Entry
	if ids, ok := l.Lookup(InputIDs); ok && names.Index(InputIDs) < 0 {
		entries = append(entries, *ids)
	}
	for _, e := range names.Entries {
		if known, ok := l.Lookup(e.Name); ok {
			e = *known
		}
		entries = append(entries, e)
	}
	return newList(l.Config, entries)
}

// listedLayer is the number of the layer in a name that a user lists. It is −1 for a name without a layer, and for a number that is too large for any model.
func listedLayer(name string) int {
	layer := NameOf(name).Layer()
	if layer/10 > maxLayers {
		return -1
	}
	return layer
}

// A listing is made for a pass with more tokens than a model has channels or words, and with still more tokens before
// the pass: every size then shows which quantity it is.
const (
	listedTokens = 1<<21 + 17
	listedPast   = 1<<26 + 19
)

// Listing is the program of an entry, to be read: its steps for a pass of T tokens after a first pass of P tokens. It is nil
// for an argument of the model, which nothing computes. The error is that of a name without an operation.
func (l *List) Listing(name string) ([]program.Line, error) {
	i := l.Index(name)
	if i < 0 || l.Entries[i].Op == nil {
		return nil, fmt.Errorf("%s has no operation", name)
	}
	e := &l.Entries[i]
	if _, given := e.Op.(op.Given); given {
		return nil, nil
	}
	node := Node{i, 1}
	cut, err := l.Cut(func(n Node) bool { return n != node }, node)
	if err != nil {
		return nil, err
	}
	f, err := cut.Formula([]Pass{{Tokens: listedPast}, {Past: listedPast, Tokens: listedTokens}}, hooks.BF16)
	if err != nil {
		return nil, err
	}
	sliding := 0
	if l.Config != nil {
		sliding = (&Entry{Shape: []Dim{SSliding}}).Size(Pass{listedPast, listedTokens}, l.Config.SlidingWindow)[0]
	}
	lines := f.Listing(func(n int) string { return listedSize(n, sliding) }, func(s *program.Step) string {
		if s.Prim == program.Input {
			return e.Inputs[s.Index()].String()
		}
		return e.Weights[s.Index()].Name
	})
	result := &lines[len(lines)-1]
	switch d := e.DTypeOf(hooks.BF16); {
	case d == hooks.BF16:
		result.Round = "R"
	case d != hooks.F32 && d.Float():
		result.Round = d.String()
	}
	return lines, nil
}

// String is the name, with the stream of a stack that is taken and with what is of the pass before.
func (r Ref) String() string {
	s := r.Name
	if r.Index != nil {
		s += fmt.Sprintf("[%d]", *r.Index)
	}
	if r.Prev {
		s += " of the pass before"
	}
	return s
}

// listedSize is a size in the pass that is listed.
func listedSize(n, sliding int) string {
	switch n {
	case listedTokens:
		return T.String()
	case listedPast + listedTokens:
		return SFull.String()
	case sliding:
		return SSliding.String()
	}
	name := ""
	switch {
	case n > listedPast/2:
		name, n = "P", n-listedPast
	case n > listedTokens/2:
		name, n = T.String(), n-listedTokens
	default:
		return fmt.Sprint(n)
	}
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s%+d", name, n)
}
