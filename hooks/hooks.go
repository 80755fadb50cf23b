// Package hooks names places in a forward pass and lets others look at the tensors there, or replace them.
//
// A model asks a [Registry] once, when it is built, for a [Point] per named tensor, and fires the point where
// the tensor is computed. Where nobody asked to see a name its point is nil, and firing a nil point costs a
// comparison: no name is formatted and nothing is allocated in the forward pass. Observing changes nothing;
// only a replacer, which tests use to plant faults, writes into the model's buffer.
//
// The package is the lowest floor of tracediff and uses only the standard library, so that a port written in
// Go can import it without taking anything else along.
package hooks

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Event is one firing of one point.
type Event struct {
	Name   string
	Pass   int // the forward call: 0 for the prefill, then one per decode step
	Tensor Tensor
}

// Observer looks at a tensor. The tensor's bytes may be a view of live memory: valid during the call, not to be
// written. An error ends the run: it sticks, and every later Fire of the registry returns it.
type Observer func(Event) error

// Replacer returns the tensor that the model is to go on with, of the same dtype and shape, or a Tensor without
// dtype (the zero value) to leave the model's own.
type Replacer func(Event) (Tensor, error)

// Registry collects observers and replacers by name or pattern, then resolves names to points.
// The zero value is ready. A nil Registry observes nothing. It is not safe for concurrent use: a forward pass
// fires its points from one goroutine.
type Registry struct {
	named    map[string][]hook // by whole name
	patterns []hook
	count    int
	sealed   bool
	pass     int
	err      error
}

// hook is one registration: an observer or a replacer.
type hook struct {
	place   int // among all registrations
	pattern string
	observe Observer
	replace Replacer
}

// errSealed is returned for a registration that comes after a point was resolved: it would be missed there.
var errSealed = errors.New("hooks: register observers and replacers before the model resolves its points")

// Observe registers do for every name that matches pattern: a name, or a pattern of [path.Match], in which
// '*' is any run of characters (dots too), '?' any one and '[a-c]' a set. Observers run in the order of
// registration, after the replacers.
func (r *Registry) Observe(pattern string, do Observer) error {
	return r.add(hook{pattern: pattern, observe: do})
}

// Replace registers do for every name that matches pattern, as Observe does.
func (r *Registry) Replace(pattern string, do Replacer) error {
	return r.add(hook{pattern: pattern, replace: do})
}

func (r *Registry) add(h hook) error {
	if r.sealed {
		return errSealed
	}
	if err := CheckPattern(h.pattern); err != nil {
		return fmt.Errorf("hooks: %w", err)
	}
	h.place = r.count
	r.count++
	if strings.ContainsAny(h.pattern, `*?[\`) {
		r.patterns = append(r.patterns, h)
		return nil
	}
	// A capture registers every name of a list; looking each up keeps resolving a model's points linear.
	if r.named == nil {
		r.named = map[string][]hook{}
	}
	r.named[h.pattern] = append(r.named[h.pattern], h)
	return nil
}

// CheckPattern reports a pattern that [Registry.Observe] does not take.
func CheckPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return nil
}

// Match reports whether name is matched by pattern, in the syntax of [Registry.Observe]. A malformed pattern
// matches nothing.
func Match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// Point resolves a name. It returns nil when nobody observes or replaces the name, and for a nil Registry.
// From the first call on, nothing more can be registered.
func (r *Registry) Point(name string) *Point {
	if r == nil {
		return nil
	}
	r.sealed = true
	found := slices.Clone(r.named[name])
	for _, h := range r.patterns {
		if Match(h.pattern, name) {
			found = append(found, h)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b hook) int { return a.place - b.place })
	p := &Point{registry: r, name: name}
	for _, h := range found {
		if h.observe != nil {
			p.observers = append(p.observers, h.observe)
		} else {
			p.replacers = append(p.replacers, h.replace)
		}
	}
	return p
}

// BeginPass tells observers which forward call the next events belong to.
func (r *Registry) BeginPass(pass int) {
	if r != nil {
		r.pass = pass
	}
}

// Err returns the first error of an observer or replacer, or of a tensor fired with the wrong size.
func (r *Registry) Err() error {
	if r == nil {
		return nil
	}
	return r.err
}

// Point is one named place in a forward pass, resolved. A nil Point is one that nobody looks at.
type Point struct {
	registry  *Registry
	name      string
	observers []Observer
	replacers []Replacer
}

// Replaces reports whether firing p may write into the tensor. A model that fires a converted copy of its
// buffer reads the copy back if so.
func (p *Point) Replaces() bool { return p != nil && p.replacers != nil }

// Fire hands t to the replacers, whose result is copied into t.Data, and then to the observers. On a nil point
// it does nothing. It returns the registry's first error, from this call or an earlier one.
func (p *Point) Fire(t Tensor) error {
	if p == nil {
		return nil
	}
	if p.registry.err == nil {
		if err := p.fire(Event{p.name, p.registry.pass, t}); err != nil {
			p.registry.err = fmt.Errorf("hook %s, pass %d: %w", p.name, p.registry.pass, err)
		}
	}
	return p.registry.err
}

func (p *Point) fire(e Event) error {
	if err := e.Tensor.Check(); err != nil {
		return err
	}
	for _, do := range p.replacers {
		with, err := do(e)
		if err != nil {
			return err
		}
		if !with.DType.Valid() {
			continue
		}
		if with.DType != e.Tensor.DType || !slices.Equal(with.Shape, e.Tensor.Shape) {
			return fmt.Errorf("replacement is %s %v, the tensor is %s %v", with.DType, with.Shape, e.Tensor.DType, e.Tensor.Shape)
		}
		if err := with.Check(); err != nil {
			return err
		}
		copy(e.Tensor.Data, with.Data)
	}
	for _, do := range p.observers {
		if err := do(e); err != nil {
			return err
		}
	}
	return nil
}
