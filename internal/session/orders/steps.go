package orders

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/stepdiff"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
)

// DiffPrograms compares two recorded programs step by step. A trace file stands for the program next to it. mapFile
// names a map from the tensor names of b to the names of a; empty without a map.
func DiffPrograms(a, b, mapFile string) (*stepdiff.Report, error) {
	var both [2]*Program
	for i, path := range []string{a, b} {
		if strings.HasSuffix(path, ".safetensors") {
			path = reference.ProgramBeside(path)
		}
		var err error
		if both[i], err = OpenProgram(path); err != nil {
			return nil, err
		}
	}
	x, y := both[0].file, both[1].file
	for i := range min(len(x.Passes), len(y.Passes)) {
		if p, q := x.Passes[i], y.Passes[i]; p.Tokens != q.Tokens || p.Past != q.Past {
			return nil, hint.Add(fmt.Errorf("pass %d has %s after %d in %s, and %s after %d in %s: every size would differ", i, amount.Of(p.Tokens, "token"), p.Past, a, amount.Of(q.Tokens, "token"), q.Past, b),
				"record both on prompts of as many tokens")
		}
	}
	m, err := (&settings.Settings{Map: mapFile}).ReadMap()
	if err != nil {
		return nil, err
	}
	return stepdiff.New(x, stepdiff.Renamed(y, m.Renamed)).All(), nil
}

// Code returns a function for the report of a divergence: it gives the source lines computing an entry and, if both
// sides were recorded, the differing steps. used is the program in use as the order; if it is nil, the programs
// next to the traces are read. m maps the local program's names to the names of the reference, and is nil without a
// map. Files are read at the first call; unreadable files give no explanation.
func Code(e *settings.Env, used *Program, local, ref *capture.Trace, m *mapping.Map) func(name string, pass int) *compare.Code {
	read := sync.OnceValues(func() (l, r *Program) {
		for i, t := range []*capture.Trace{local, ref} {
			p, err := ProgramBeside(t)
			if p != nil {
				p, err = p.forTraces([]*capture.Trace{t})
			}
			if err != nil {
				fmt.Fprintf(e.Notes, "note: the steps of %s are not shown: %v\n", t.Path(), err)
			}
			*[]**Program{&l, &r}[i] = p
		}
		if r == nil {
			r = used
		}
		if l != nil && m != nil && local != ref {
			own := *l
			own.file = stepdiff.Renamed(l.file, m.Renamed)
			l = &own
		}
		return l, r
	})
	return func(name string, pass int) *compare.Code {
		l, r := read()
		c := &compare.Code{}
		if l != nil {
			c.Local = stepdiff.Source(l.file, name, pass)
		}
		if r != nil {
			c.Reference = stepdiff.Source(r.file, name, pass)
		}
		if l != nil && r != nil {
			both := stepdiff.New(r.file, l.file)
			c.Compared = both.Has(name, pass)
			if d := both.Entry(name, pass, captured(local, ref)); d != nil {
				c.Steps = d.Steps
			}
		}
		if l == nil && r == nil {
			return nil
		}
		return c
	}
}

// captured tells which tensors both traces have.
func captured(local, ref *capture.Trace) func(name string, pass int) bool {
	type at struct {
		name string
		pass int
	}
	both := map[at]int{}
	for i, t := range []*capture.Trace{local, ref} {
		for _, r := range t.Records() {
			if r.Firing == 0 {
				both[at{r.Name, r.Pass}] |= 1 << i
			}
		}
	}
	return func(name string, pass int) bool { return both[at{name, pass}] == 3 }
}
