// Package lengths makes the recorded program of a prompt of another length, from runs of a few lengths that were recorded together.
package lengths

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/order/recorded"
)

// ErrLengths says that the program has no answer for the requested lengths of passes: no run was recorded with these
// lengths, and no rule leads from the recorded lengths to the requested lengths.
var ErrLengths = errors.New("was recorded with other lengths")

// For is the program of a prompt of lengths[0] tokens and of further passes of one token each. What was recorded is returned as it is
// where it is that. Otherwise runs of other lengths that were recorded, too, have to show what each number of the program is there:
// for lengths between the shortest and the longest of them, a size is a polynomial of the length, and a constant follows a rule
// of positions and lengths. Each size and each constant is made for what was recorded first, and has to be the recorded one. The error
// wraps [ErrLengths] and says what depends on the prompt in another way.
func For(p *recorded.Program, lengths []int) (*recorded.Program, error) {
	if len(lengths) <= len(p.Passes) && slices.EqualFunc(lengths, p.Passes[:len(lengths)], func(n int, own recorded.Pass) bool { return n == own.Tokens }) {
		return p, nil
	}
	runs, err := p.Runs()
	if err != nil {
		return nil, err
	}
	return from(p, runs, lengths)
}

// from makes a program of a prompt from what was recorded first and runs of other lengths.
func from(p *recorded.Program, runs [][]recorded.Pass, lengths []int) (*recorded.Program, error) {
	if len(runs) == 0 {
		if p.Alone != "" {
			return nil, fmt.Errorf("%w: %.200s", ErrLengths, p.Alone)
		}
		return nil, ErrLengths
	}
	to := p.Empty()
	past := 0
	for i, tokens := range lengths {
		if i > 0 && tokens != 1 {
			return nil, fmt.Errorf("%w: want a prompt in one pass, and then one token a pass", ErrLengths)
		}
		s := &stretcher{from: p, runs: runs, to: to, at: i, pass: recorded.Pass{Tokens: tokens, Past: past, First: len(to.Values)}}
		if err := s.run(); err != nil {
			return nil, fmt.Errorf("%w: pass %d, %w", ErrLengths, i, err)
		}
		past += tokens
	}
	return to, nil
}

// stretcher makes one pass of another length.
type stretcher struct {
	from *recorded.Program
	runs [][]recorded.Pass // of other lengths
	to   *recorded.Program
	at   int
	pass recorded.Pass

	samples   []sample // of passes of its kind
	constants map[string]int
	numbers   int // of constants that were made
}

// kinds of passes: the first pass, the second pass, which reads the first pass's cache, and all further passes.
const kinds = 3

// run makes the pass from the most samples that have a rule in common.
func (s *stretcher) run() error {
	all := s.passes(min(s.at, kinds-1))
	if len(all) == 0 {
		return errors.New("and no run has this many passes")
	}
	x, what := s.pass.Past, "the tokens before it"
	if s.at == 0 {
		x, what = s.pass.Tokens, "its tokens"
	}
	if low, high := all[0].x, all[len(all)-1].x; x < low || x > high {
		return fmt.Errorf("%s are %d, and the recorded numbers are %d to %d", what, x, low, high)
	}
	var why error
	kept := *s.to
	for _, s.samples = range windows(all, x) {
		err := s.lines(x)
		if err == nil {
			s.to.Passes = append(s.to.Passes, s.pass)
			return nil
		}
		why = err // of the fewest about it in the end
		s.to.Values, s.to.Constants, s.pass.Lines = kept.Values, kept.Constants, nil
	}
	if why == nil {
		return fmt.Errorf("too few lengths near %[2]d were recorded (%[1]s)", what, x)
	}
	return why
}

// passes are the recorded passes of a kind, by their lengths.
func (s *stretcher) passes(kind int) []sample {
	var all []sample
	for _, run := range append([][]recorded.Pass{s.from.Passes}, s.runs...) {
		if slices.ContainsFunc(run[1:], func(one recorded.Pass) bool { return one.Tokens != 1 }) {
			run = run[:1]
		}
		past := 0
		for i := range run {
			if run[i].Past != past {
				break
			}
			if past += run[i].Tokens; min(i, kinds-1) == kind {
				x := run[i].Past
				if i == 0 {
					x = run[i].Tokens
				}
				all = append(all, sample{run, i, x})
			}
		}
	}
	return sorted(all)
}

// lines makes the lines of the pass.
func (s *stretcher) lines(x int) error {
	s.constants = map[string]int{}
	first := s.samples[0].pass()
	for _, other := range s.samples {
		if n := len(other.pass().Lines); n != len(first.Lines) {
			return fmt.Errorf("which has %d lines for %d tokens and %d for %d, from %s on", len(first.Lines), s.samples[0].x, n, other.x, s.parting(first, other.pass()))
		}
	}
	all := make([]*recorded.Line, len(s.samples))
	for i := range first.Lines {
		for k := range s.samples {
			all[k] = &s.samples[k].pass().Lines[i]
		}
		line, err := s.line(all, x)
		if err != nil {
			return fmt.Errorf("%s: %w", s.from.What(all[0]), err)
		}
		s.pass.Lines = append(s.pass.Lines, line)
	}
	return nil
}

// parting names the first line at which two passes of different length differ in operation or name.
func (s *stretcher) parting(a, b *recorded.Pass) string {
	longer, shorter := a.Lines, b.Lines
	if len(longer) < len(shorter) {
		longer, shorter = shorter, longer
	}
	for i := range shorter {
		if kind(&longer[i]) != kind(&shorter[i]) {
			return s.from.What(&longer[i])
		}
	}
	return s.from.What(&longer[len(shorter)])
}

// kind is the operation or the name of a line.
func kind(l *recorded.Line) string {
	if l.Name != nil {
		return l.Name.Name
	}
	return l.Step.Op
}

var errOther = errors.New("differs in a prompt of another length")

func (s *stretcher) line(all []*recorded.Line, x int) (out recorded.Line, err error) {
	first := all[0]
	out.Layer = first.Layer
	for _, l := range all {
		if l.Layer != first.Layer || (l.Name == nil) != (first.Name == nil) {
			return out, errOther
		}
	}
	if first.Name != nil {
		of := make([]recorded.Ref, len(all))
		for k, l := range all {
			if of[k] = l.Name.Of; l.Name.Name != first.Name.Name || l.Name.Level != first.Name.Level {
				return out, errOther
			}
		}
		name := *first.Name
		name.Of, err = s.ref(of, x)
		out.Name = &name
		return out, err
	}
	out.Step, err = s.step(all, x)
	return out, err
}
