package debug

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// slowestShown is how many sections the summary lists.
const slowestShown = 5

// totals are what is known of the whole run.
type totals struct {
	passes, short, tensors int
	nan, posInf, negInf    int64
	elapsed, hooks         time.Duration // between the hooks; in them, for the trace, the statistics and the lines
	sections               map[string]time.Duration
}

func (t *totals) add(p *passed) {
	t.tensors += p.tensors
	t.nan += p.nan
	t.posInf += p.posInf
	t.negInf += p.negInf
	t.elapsed += p.elapsed
}

// summary writes the sections that took longest over all passes, and the closing line.
func (d *Log) summary() {
	t, l := &d.total, &d.line
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
	l.begin("end")
	l.int("passes", int64(t.passes))
	l.int("short", int64(t.short))
	l.int("tensors", int64(t.tensors))
	l.counts(t.nan, t.posInf, t.negInf)
	l.ms("ms", t.elapsed)
	l.ms("hooks_ms", t.hooks)
	l.end()
}
