// Package debug shows a run while it happens: a line on standard error as each hook fires, with the tensor's statistics,
// a line at the end of each section of a forward pass with its time, and a summary.
//
// Lines are for grep and awk as much as for people, so they are one format, "debug: KIND key=value ...", and stay as they
// are: docs/inside.md lists the kinds and has the regular expression. The recorders for Python and C print the same lines.
//
// The package shows what a run records, or the part of it that was asked for. A scope that is narrow makes the output short, and the time of
// what lies outside of it is the next hook's. It is no profiler: times are those between two hooks, without its own.
package debug

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/lanes"
	"github.com/tracediff/tracediff/order"
)

// What is shown where nothing else is asked for: enough to see a prefill and the start of decoding, one screen of ids, and
// hundreds of lines of a model with many layers.
const (
	Passes    = 3  // shown tensor by tensor; of later ones a line each
	Layers    = 2  // shown tensor by tensor in such a pass; of later ones a line each
	Tokens    = 32 // ids listed of a sequence of a pass
	Top       = 5  // most likely tokens listed of a sequence of a pass
	Sequences = 4  // of a batch that are listed
)

// Options say what a [Log] shows. The zero value is the default.
type Options struct {
	Side      string              // "local" or "reference": for the first line; empty where there is only one
	Passes    int                 // passes below this number are shown in full; 0 is [Passes]
	Layers    int                 // layers below this number are shown tensor by tensor; 0 is [Layers]
	Positions capture.Ranges      // list the ids at these positions of the sequence, however many; nil lists the first [Tokens]
	Starts    []int               // where in the sequence each pass starts; nil counts the ids that came by
	Text      func(id int) string // a token's text; nil for none

	// Only leaves of an event what is to be shown, if anything is, where a run records more, as [capture.Only] does; nil
	// shows all that is recorded. The time of what is not shown is the next hook's.
	Only func(hooks.Event) (hooks.Event, bool)
}

// Log prints the lines of one run. A nil Log prints nothing and costs nothing. It is for one goroutine, as a forward pass is.
type Log struct {
	w     io.Writer
	o     Options
	line  line
	watch stopwatch

	begun bool
	pass  passed
	fired map[string]int // in this pass
	steps steps
	seen  int // tokens of a sequence before this pass, where the options do not say
	noted bool
	brief bool // it was said that later layers are a line each
	total totals
}

// New returns a log that writes to w as hooks fire. What cannot be written is lost without a word: a run is not to fail
// because nobody reads its debug output any more.
func New(w io.Writer, o Options) *Log {
	if o.Passes <= 0 {
		o.Passes = Passes
	}
	if o.Layers <= 0 {
		o.Layers = Layers
	}
	return &Log{w: w, o: o, watch: stopwatch{now: time.Now}, fired: map[string]int{}, total: totals{sections: map[string]time.Duration{}}}
}

// Around returns an observer that shows an event and then hands it to write, such as a [capture.Writer]'s Observe. The time
// that either takes is not the model's and not shown. For a nil Log it is write itself.
func (d *Log) Around(write hooks.Observer) hooks.Observer {
	if d == nil {
		return write
	}
	return func(e hooks.Event) error {
		if err := d.Observe(e); err != nil {
			return err
		}
		err := write(e)
		d.watch.leave(d.watch.left) // the writer's time, since the hook was left
		return err
	}
}

// Observe shows an event: it is a [hooks.Observer]. The error is that of a tensor that is not well-formed.
func (d *Log) Observe(e hooks.Event) error {
	arrived, elapsed := d.watch.arrive()
	if d.o.Only != nil {
		var ok bool
		if e, ok = d.o.Only(e); !ok {
			d.watch.hidden = elapsed
			d.watch.leave(arrived)
			return nil
		}
	}
	d.watch.hidden = 0
	if !d.begun {
		d.begin()
		elapsed = 0 // what was before the first hook was no step of a forward
	}
	m, err := statisticsOf(e.Name, e.Tensor)
	if err != nil {
		return err
	}
	if d.total.passes == 0 || e.Pass != d.pass.number {
		d.endPass()
		d.beginPass(e.Pass)
	}
	d.enter(Section(e.Name), elapsed)
	name := capture.Key(0, e.Name, d.fired[e.Name])
	d.fired[e.Name]++
	began := d.pass.count(name, &m.Moments)
	if d.pass.full && (!d.short() || began) {
		d.line.tensor(d.pass.number, name, e.Tensor, &m, elapsed)
	}
	d.contents(e, &m.Moments, elapsed)
	d.flush()
	d.watch.leave(arrived)
	return nil
}

// End prints the summary. It is called once, whether the run ended well or not. On a nil Log it does nothing.
func (d *Log) End() {
	if d == nil {
		return
	}
	if !d.begun {
		d.begin()
	}
	d.endPass()
	d.total.summary(&d.line, d.watch.hooks)
	d.flush()
}

// flush writes the lines of one event at once: whatever ends the process leaves whole lines.
func (d *Log) flush() {
	_, _ = d.w.Write(d.line)
	d.line = d.line[:0]
}

func (d *Log) begin() {
	d.begun = true
	d.line.begin("begin")
	if d.o.Side != "" {
		d.line.word("side", d.o.Side)
	}
	d.line.int("passes", int64(d.o.Passes))
	d.line.int("tokens", Tokens)
	d.line.int("top", Top)
	d.line.int("layers", int64(d.o.Layers))
	d.line.end()
}

func (d *Log) beginPass(number int) {
	clear(d.fired)
	d.pass = passed{number: number, full: number < d.o.Passes}
	d.total.passes++
	if d.pass.full {
		return
	}
	d.total.short++
	if !d.noted {
		d.noted = true
		d.note("from here on one line a pass; --passes or TRACEDIFF_DEBUG_PASSES show more of them in full")
	}
}

// note says of a pass what is not shown, and why.
func (d *Log) note(text string) {
	d.line.begin("note")
	d.line.int("pass", int64(d.pass.number))
	d.line.text("text", text)
	d.line.end()
}

// enter counts time to a section, and ends the one before if this is another.
func (d *Log) enter(section string, elapsed time.Duration) {
	p := &d.pass
	if section != p.section.name {
		d.endSection()
		p.section.name = section
	}
	p.section.tensors++
	p.section.elapsed += elapsed
	p.elapsed += elapsed
}

// short reports whether the tensors of the section are not listed: those of a later layer. The first time it says so.
func (d *Log) short() bool {
	number, ok := strings.CutPrefix(d.pass.section.name, "layer.")
	if n, err := strconv.Atoi(number); !ok || err != nil || n < d.o.Layers {
		return false
	}
	if !d.brief {
		d.brief = true
		d.note(fmt.Sprintf("from layer %d on one line a layer; --layers or TRACEDIFF_DEBUG_LAYERS show more of them in full", d.o.Layers))
	}
	return true
}

// contents shows what is inside of the tensors that a person reads: ids, series of steps, logits, losses.
func (d *Log) contents(e hooks.Event, m *lanes.Moments, elapsed time.Duration) {
	series, n, isStep := step(e.Name)
	switch {
	case isStep:
		d.step(e, series, n, elapsed)
	case e.Name == order.InputIDs:
		d.ids(e.Tensor)
	case e.Name == "logits" || strings.HasSuffix(e.Name, ".logits"):
		d.logits(e.Tensor)
	case e.Name == "loss" || strings.HasSuffix(e.Name, ".loss"):
		d.pass.loss, d.pass.hasLoss = certain(m), true
	}
}

func (d *Log) endSection() {
	p := &d.pass
	s := p.section
	if s.name == "" {
		return
	}
	if p.full {
		d.line.begin("section")
		d.line.int("pass", int64(p.number))
		d.line.word("section", s.name)
		d.line.int("tensors", int64(s.tensors))
		d.line.ms("ms", s.elapsed)
		d.line.end()
	}
	if p.slowest.name == "" || s.elapsed > p.slowest.elapsed {
		p.slowest = s
	}
	d.total.sections[s.name] += s.elapsed
	p.section = timed{}
}

func (d *Log) endPass() {
	if d.total.passes == 0 {
		return
	}
	d.endSection()
	d.endSeries()
	p := &d.pass
	d.line.begin("pass")
	d.line.int("pass", int64(p.number))
	d.line.int("tensors", int64(p.tensors))
	d.line.counts(p.bad)
	d.line.word("first_nan", p.firstNaN)
	d.line.word("slowest", p.slowest.name)
	d.line.ms("slowest_ms", p.slowest.elapsed)
	d.line.ms("ms", p.elapsed)
	d.line = append(d.line, p.top...)
	if p.hasLoss {
		d.line.number("loss", p.loss)
	}
	d.line.end()
	d.total.add(p)
	d.seen += p.batch.tokens
}
