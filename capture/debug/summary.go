package debug

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// slowestShown is the number of sections in the summary.
const slowestShown = 5

// totals are the figures of the whole run.
type totals struct {
	passes, short, tensors int
	bad                    counts
	elapsed                time.Duration // between the hooks
	sections               map[string]time.Duration
	averages               []*average
	losses                 losses
}

// losses are the losses of the passes: the mean, the first loss and the lowest loss. A NaN is not counted.
type losses struct {
	mean
	first, lowest float64
}

func (l *losses) add(x float64) {
	if x == x {
		if l.n == 0 {
			l.first, l.lowest = x, x
		}
		l.lowest = min(l.lowest, x)
	}
	l.mean.add(x)
}

// average is the average of a series over all its chunks.
type average struct {
	name                   string
	chunks                 int
	steps                  mean // steps to convergence, of the chunks that converged
	sure, lost             mean // of all steps
	surest, lowest, millis mean // confidence and loss of the last step of each chunk, and the time of each chunk
}

// series adds a chunk to the average of its series.
func (t *totals) series(s *series, sure, lost *mean) {
	at := slices.IndexFunc(t.averages, func(a *average) bool { return a.name == s.name })
	if at < 0 {
		at = len(t.averages)
		t.averages = append(t.averages, &average{name: s.name})
	}
	a := t.averages[at]
	a.chunks++
	if s.settled >= 0 {
		a.steps.add(float64(s.settled))
	}
	a.sure.merge(sure)
	a.lost.merge(lost)
	a.surest.add(sure.latest())
	a.lowest.add(lost.latest())
	a.millis.add(float64(s.done-s.began) / float64(time.Millisecond))
}

// line writes the averages of a series.
func (a *average) line(l *line) {
	l.begin("average")
	l.word("series", a.name)
	l.int("chunks", int64(a.chunks))
	l.int("converged", int64(a.steps.n))
	l.number("steps", a.steps.mean())
	l.number("confidence", a.sure.mean())
	l.number("loss", a.lost.mean())
	l.number("last_confidence", a.surest.mean())
	l.number("last_loss", a.lowest.mean())
	l.ms("ms", time.Duration(a.millis.mean()*float64(time.Millisecond)))
	l.end()
}

func (t *totals) add(p *passed) {
	t.tensors += p.tensors
	t.bad.add(p.bad)
	t.elapsed += p.elapsed
	if p.hasLoss {
		t.losses.add(p.loss)
	}
}

// summary writes the sections that took longest over all passes, the averages of the series, the losses, and the closing line. hooks is the time in
// hooks, which the times of sections and passes exclude.
func (t *totals) summary(l *line, hooks time.Duration) {
	names := slices.SortedFunc(maps.Keys(t.sections), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.sections[b], t.sections[a]), cmp.Compare(a, b))
	})
	for _, name := range names[:min(len(names), slowestShown)] {
		l.begin("slowest")
		l.word("section", name)
		l.ms("ms", t.sections[name])
		l.percent("percent", float64(t.sections[name])/float64(t.elapsed))
		l.end()
	}
	for _, a := range t.averages {
		a.line(l)
	}
	if t.losses.n > 0 {
		l.begin("losses")
		l.int("passes", int64(t.losses.n))
		l.number("first", t.losses.first)
		l.number("last", t.losses.last)
		l.number("lowest", t.losses.lowest)
		l.number("mean", t.losses.mean.mean())
		l.end()
	}
	l.begin("end")
	l.int("passes", int64(t.passes))
	l.int("short", int64(t.short))
	l.int("tensors", int64(t.tensors))
	l.counts(t.bad)
	l.ms("ms", t.elapsed)
	l.ms("hooks_ms", hooks)
	l.end()
}
