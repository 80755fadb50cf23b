package order_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Isolation evaluates each captured entry's cut by itself. What was not captured may be a step of several cuts, and is evaluated in each:
// that is nothing at level 3, and at levels 1 and 2 less than a thousandth of what all cuts compute, so nothing of it is kept. -v has the figures.
func TestCutsShareLittle(t *testing.T) {
	f, err := os.Open("testdata/configs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Name   string
			Config json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		config, err := order.ReadConfig(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		list, err := order.New(config)
		if err != nil {
			continue // a model that is recorded
		}
		for level, most := range map[int]float64{1: 0.001, 2: 0.001, 3: 0} {
			s := sharedAt(t, list, level)
			t.Logf("%s, level %d: %d entries, %d steps between, %d of them again: %.4f %% of what is computed", c.Name, level, s.entries, s.between, s.again, 100*s.share())
			if s.entries == 0 || s.share() > most {
				t.Errorf("%s, level %d: %.4f %% of what %d entries compute is computed again", c.Name, level, 100*s.share(), s.entries)
			}
		}
	}
}

// shared counts the cuts of captured entries: the steps that are not these entries themselves, and how often one of them is met again;
// with the elements and products of all, and of those that are met again.
type shared struct{ entries, between, again, work, workAgain int }

func (s shared) share() float64 { return float64(s.workAgain) / float64(max(s.work, 1)) }

func sharedAt(t *testing.T, list *order.List, level int) (s shared) {
	t.Helper()
	captured := func(n order.Node) bool { e := list.At(n); return e.Level <= level && !e.Derived() }
	passes := order.Passes([]int{16, 1, 1, 1})
	works := map[order.Node]int{}
	work := func(n order.Node) int {
		if w, ok := works[n]; ok {
			return w
		}
		one, err := list.Cut(func(m order.Node) bool { return m != n }, n)
		if err != nil {
			t.Fatal(err)
		}
		formula, err := one.Formula(passes, hooks.BF16)
		if err != nil {
			t.Fatal(err)
		}
		works[n] = formula.Work()
		return works[n]
	}
	met := map[order.Node]bool{}
	for k := range len(passes) * len(list.Entries) {
		n := order.Node{Entry: k % len(list.Entries), Pass: k / len(list.Entries)}
		cut, err := list.Cut(captured, n)
		if err != nil || !captured(n) { // an argument, or computed from one that was not captured
			continue
		}
		s.entries++
		for _, step := range cut.Steps {
			s.work += work(step)
			if step == n {
				continue
			}
			if s.between++; met[step] {
				s.again++
				s.workAgain += work(step)
			}
			met[step] = true
		}
	}
	return s
}
