// Package debug shows a run while it happens, on standard error: a line for each hook, with the statistics of the tensor, a line with the
// time at the end of each section of a forward pass, and a summary at the end.
//
// The lines are for grep and awk as well as for people. They have one format, "debug: KIND key=value ...", which does not change:
// docs/inside.md lists the kinds and has the regular expression. The recorders for Python and C print the same lines.
//
// The package shows the tensors that a run records, or a part of them. The times are not a profile: a time is the time between two hooks,
// without the time in hooks. With a narrow scope, the time of a tensor out of scope counts for the next hook.
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

// The defaults are enough to see a prefill and the start of decoding, one screen of ids, and hundreds of lines of a model
// with many layers.
const (
	Passes    = 3  // shown tensor by tensor; each later pass has one line
	Layers    = 2  // shown tensor by tensor in a pass shown in full; each later layer has one line
	Tokens    = 32 // ids listed for each sequence of a pass
	Top       = 5  // most likely tokens listed for each sequence of a pass
	Sequences = 4  // sequences listed for each pass
)

// Options say what a [Log] shows. The zero value is the default.
type Options struct {
	Side      string              // "local" or "reference", for the first line; empty in a run of one side
	Passes    int                 // passes below this number are shown in full; 0 is [Passes]
	Layers    int                 // layers below this number are shown tensor by tensor; 0 is [Layers]
	Positions capture.Ranges      // list the ids at these positions of the sequence, however many; nil lists the first [Tokens]
	Starts    []int               // the position in the sequence at which each pass starts; nil counts the ids of earlier passes
	Text      func(id int) string // a token's text; nil for none

	// Only cuts an event to the part that is shown, for a run that records more, as [capture.Only] does; false hides the
	// event. nil shows every event. The time of a hidden event counts for the next hook.
	Only func(hooks.Event) (hooks.Event, bool)
}

// Log prints the lines of one run. A nil Log prints nothing and costs nothing. A Log is for one goroutine, like a forward
// pass.
type Log struct {
	w     io.Writer
	o     Options
	line  line
	watch stopwatch

	begun bool
	pass  passed
	fired map[string]int // in this pass
	steps steps
	seen  int // tokens of a sequence before this pass, used without Options.Starts
	noted bool
	brief bool // the note on later layers has been written
	total totals
}

// New returns a log that writes to w as hooks fire. Errors of w are ignored: a run must not fail because nobody reads
// its debug output any more.
func New(w io.Writer, o Options) *Log {
	if o.Passes <= 0 {
		o.Passes = Passes
	}
	if o.Layers <= 0 {
		o.Layers = Layers
	}
	return &Log{w: w, o: o, watch: stopwatch{now: time.Now}, fired: map[string]int{}, total: totals{sections: map[string]time.Duration{}}}
}

// Around returns an observer that shows an event and then hands the event to write, such as a [capture.Writer]'s Observe.
// Neither time counts as time of the model. For a nil Log, Around returns write.
func (d *Log) Around(write hooks.Observer) hooks.Observer {
	if d == nil {
		return write
	}
	return func(e hooks.Event) error {
		if err := d.Observe(e); err != nil {
			return err
		}
		err := write(e)
		d.watch.leave(d.watch.left) // the time of write
		return err
	}
}

// Observe shows an event: it is a [hooks.Observer]. A tensor that is not well-formed is an error.
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
		elapsed = 0 // the time before the first hook is not part of a forward pass
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

// End prints the summary. Call End once, whether the run ended well or not. On a nil Log, End does nothing.
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

// flush writes the lines of one event in one call: a killed process leaves no part of a line.
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

// note writes a line that says which part of a pass is not shown, and why.
func (d *Log) note(text string) {
	d.line.begin("note")
	d.line.int("pass", int64(d.pass.number))
	d.line.text("text", text)
	d.line.end()
}

// enter counts time to a section. If the section is not the current one, the current section ends.
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

// short reports whether the section is a later layer, whose tensors are not listed. For the first such layer, it
// writes a note.
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

// contents shows the contents of tensors that a person reads: ids, series of steps, logits, losses.
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
