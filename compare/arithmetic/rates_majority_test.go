package arithmetic_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/pagetest"
	"github.com/tracediff/tracediff/order"
)

// majorityThresholds are the thresholds, and looser thresholds that show what each adds.
var majorityThresholds = []struct {
	name   string
	change func(*arithmetic.Thresholds)
}{
	{"Held 2, Share 0.5", func(*arithmetic.Thresholds) {}},
	{"Held 1, Share 0.5", func(s *arithmetic.Thresholds) { s.Majority.Held = 1 }},
	{"Held 2, Share 0.4", func(s *arithmetic.Thresholds) { s.Majority.Share = 0.4 }},
	{"Held 2, Share 0.25", func(s *arithmetic.Thresholds) { s.Majority.Share = 0.25 }},
	{"Held 1, Share 0.25", func(s *arithmetic.Thresholds) { s.Majority.Share, s.Majority.Held = 0.25, 1 }},
}

// majorityCounts count forms with an entry that transformers' arithmetic does not explain.
type majorityCounts struct {
	forms, all     int // forms in which mistakes touch an entry, and all entries
	suspects, thin int // forms that a majority decided with suspects, in the runs decided; and forms whose suspects are not accused
	other          int // forms that an arithmetic other than transformers' decided
	decided        []*plantedRun
	right, hidden  []string // forms with a right entry among the suspects, and with a wrong entry that is held
}

// looserShare: one trace in so many is decided with looser thresholds, too.
const looserShare = 4

// ratesOfMajority measures how often a majority of the entries of a form decides wrongly: an entry that no mistake touches is a suspect, or an
// entry with a mistake is held, by an arithmetic other than transformers'. The guilty entries of the bug bench are known.
// TRACEDIFF_MAJORITY sets how many traces are drawn.
func (p *plantedRuns) ratesOfMajority(t *testing.T) {
	runs := drawnRuns(p.runs, pagetest.Samples(t, "TRACEDIFF_MAJORITY", len(p.runs)))
	var out strings.Builder
	out.WriteString("\n| thresholds | traces | mistakes | forms with a mistake | in all entries | decided with suspects | of mistakes | by another arithmetic | suspects not accused | a right entry is a suspect | a wrong entry is held |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for k, of := range majorityThresholds {
		t.Run(of.name, func(t *testing.T) {
			arithmetic.SetThresholds(t, of.change)
			some := runs
			if k > 0 {
				some = runs[:(len(runs)+looserShare-1)/looserShare]
			}
			c := p.majority(t, some)
			fmt.Fprintf(&out, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", of.name, len(some), differentFaults(some), c.forms, c.all, c.suspects, differentFaults(c.decided), c.other, c.thin, len(c.right), len(c.hidden))
			t.Logf("right suspects:\n%s\nheld with a mistake:\n%s", strings.Join(c.right, "\n"), strings.Join(c.hidden, "\n"))
			if k == 0 && len(c.right)+len(c.hidden) > 0 {
				t.Errorf("%d forms suspect a right entry, and %d hold a wrong one", len(c.right), len(c.hidden))
			}
		})
	}
	p.page(t, "majority", len(p.runs) == ratesMeasured && len(runs) == majorityMeasured, out.String())
}

func (p *plantedRuns) majority(t *testing.T, runs []*plantedRun) *majorityCounts {
	t.Helper()
	var mu sync.Mutex
	c := &majorityCounts{}
	p.each(t, runs, func(r *plantedRun, isolator func(isolate.Options) (*compare.Isolator, error)) error {
		i, err := isolator(isolate.Options{})
		if err != nil {
			return err
		}
		touched := r.touched(i.Isolator)
		forms := i.CapturedForms()
		for _, name := range forms.Names {
			f, left, err := i.Forms.Suspected(t.Context(), name)
			if err != nil {
				return err
			}
			if left > 0 {
				mu.Lock()
				c.add(r, i.Isolator, name, f, touched)
				mu.Unlock()
			}
		}
		return nil
	})
	slices.Sort(c.right)
	slices.Sort(c.hidden)
	return c
}

// add counts a form. f is nil if a majority did not decide it with suspects.
func (c *majorityCounts) add(r *plantedRun, i *isolate.Isolator, name isolate.FormKey, f *arithmetic.SuspectForm, touched map[order.Node]bool) {
	nodes, wrong := i.CapturedForms().Nodes[name], 0
	for _, n := range nodes {
		if touched[n] {
			wrong++
		}
	}
	if wrong > 0 {
		c.forms++
	}
	if wrong == len(nodes) {
		c.all++
	}
	if f == nil {
		return
	}
	c.suspects++
	c.decided = append(c.decided, r)
	if f.Other {
		c.other++
	}
	if f.Thin {
		c.thin++
	}
	keys := func(of []order.Node, which func(order.Node) bool) (keys []string) {
		for _, n := range of {
			if which(n) {
				keys = append(keys, capture.Key(n.Pass, i.List().At(n).Name, 0))
			}
		}
		return keys
	}
	line := func(keys []string) string {
		return fmt.Sprintf("%s, %s, %d of %d entries wrong, %d held, %d suspects, thin %t: %s", r.Name, name, wrong, len(nodes), len(f.Held), len(f.Suspects), f.Thin, strings.Join(keys[:min(4, len(keys))], " "))
	}
	if right := keys(f.Suspects, func(n order.Node) bool { return !touched[n] }); len(right) > 0 {
		c.right = append(c.right, line(right))
	}
	if held := keys(f.Held, func(n order.Node) bool { return touched[n] && !slices.Contains(f.Strictly, n) }); len(held) > 0 && !r.excused() {
		c.hidden = append(c.hidden, line(held))
	}
}
