// Package debug shows a run while it happens: a line on standard error as each hook fires, with the tensor's statistics,
// a line at the end of each section of a forward pass with its time, and a summary.
//
// Lines are for grep and awk as much as for people, so they are one format, "debug: KIND key=value ...", and stay as they
// are: docs/debug.md lists the kinds and has the regular expression. The recorders for Python and C print the same lines.
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
	w    io.Writer
	o    Options
	now  func() time.Time
	line line

	begun  bool
	left   time.Time     // when the hook before was done with
	hidden time.Duration // of the model, up to hooks that were not shown
	pass   passed
	fired  map[string]int // in this pass
	steps  steps
	seen   int // tokens of a sequence before this pass, where the options do not say
	noted  bool
	brief  bool // it was said that later layers are a line each
	total  totals
}

// passed is what is known of the pass that is running.
type passed struct {
	number, tensors      int
	full                 bool
	nan, posInf, negInf  int64
	firstNaN             string
	top                  line // the most likely next token
	loss                 float64
	hasLoss              bool
	elapsed              time.Duration
	batch, tokens        int // sequences, and the tokens of each; 0 before the ids
	section, slowest     string
	inSection            int // tensors
	sectionTime, longest time.Duration
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
	return &Log{w: w, o: o, now: time.Now, fired: map[string]int{}, total: totals{sections: map[string]time.Duration{}}}
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
		now := d.now()
		d.total.hooks += now.Sub(d.left) // the writer's, since the hook was left
		d.left = now
		return err
	}
}

// Observe shows an event: it is a [hooks.Observer]. The error is that of a tensor that is not well-formed.
func (d *Log) Observe(e hooks.Event) error {
	arrived := d.now()
	elapsed := arrived.Sub(d.left) + d.hidden
	if d.o.Only != nil {
		var ok bool
		if e, ok = d.o.Only(e); !ok {
			d.hidden = elapsed
			d.leave(arrived)
			return nil
		}
	}
	d.hidden = 0
	if !d.begun {
		d.begin()
		elapsed = 0 // what was before the first hook was no step of a forward
	}
	m, masked, err := moments(e.Name, e.Tensor)
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
	began := d.count(name, &m)
	if d.pass.full && (!d.short() || began) {
		d.tensor(name, e.Tensor, &m, masked, elapsed)
	}
	d.contents(e, &m, elapsed)
	d.flush()
	d.leave(arrived)
	return nil
}

// leave lets the model go on.
func (d *Log) leave(arrived time.Time) {
	d.left = d.now()
	d.total.hooks += d.left.Sub(arrived)
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
	d.summary()
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
	if section != d.pass.section {
		d.endSection()
		d.pass.section = section
	}
	d.pass.inSection++
	d.pass.sectionTime += elapsed
	d.pass.elapsed += elapsed
}

// short reports whether the tensors of the section are not listed: those of a later layer. The first time it says so.
func (d *Log) short() bool {
	number, ok := strings.CutPrefix(d.pass.section, "layer.")
	if n, err := strconv.Atoi(number); !ok || err != nil || n < d.o.Layers {
		return false
	}
	if !d.brief {
		d.brief = true
		d.note(fmt.Sprintf("from layer %d on one line a layer; --layers or TRACEDIFF_DEBUG_LAYERS show more of them in full", d.o.Layers))
	}
	return true
}

// count adds a tensor to its pass, and reports whether it is the first of it that has NaN.
func (d *Log) count(name string, m *lanes.Moments) (first bool) {
	p := &d.pass
	p.tensors++
	p.nan += m.NaN
	p.posInf += m.PosInf
	p.negInf += m.NegInf
	if m.NaN == 0 || p.firstNaN != "" {
		return false
	}
	p.firstNaN = name
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
	if p.section == "" {
		return
	}
	if p.full {
		d.line.begin("section")
		d.line.int("pass", int64(p.number))
		d.line.word("section", p.section)
		d.line.int("tensors", int64(p.inSection))
		d.line.ms("ms", p.sectionTime)
		d.line.end()
	}
	if p.slowest == "" || p.sectionTime > p.longest {
		p.slowest, p.longest = p.section, p.sectionTime
	}
	d.total.sections[p.section] += p.sectionTime
	p.section, p.inSection, p.sectionTime = "", 0, 0
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
	d.line.counts(p.nan, p.posInf, p.negInf)
	d.line.word("first_nan", p.firstNaN)
	d.line.word("slowest", p.slowest)
	d.line.ms("slowest_ms", p.longest)
	d.line.ms("ms", p.elapsed)
	d.line = append(d.line, p.top...)
	if p.hasLoss {
		d.line.number("loss", p.loss)
	}
	d.line.end()
	d.total.add(p)
	d.seen += p.tokens
}
