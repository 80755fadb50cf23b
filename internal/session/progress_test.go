package session

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/internal/settings"
)

// told is a Progress that keeps what it is told.
type told struct {
	mu    sync.Mutex
	what  string
	bytes func() int64

	steps, all int
	most       int64 // bytes
	done       int
	doing      []string
}

func (p *told) Step(pass, passes, at, steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps, p.all = pass*steps+at, passes*steps
	if p.bytes != nil {
		p.most = max(p.most, p.bytes())
	}
}

func (p *told) Doing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = append(p.doing, what)
}

func (p *told) Done() { p.done++ }

// Everything that takes long on a large model says what it is, how far it is and how many bytes there are: the walk, that of the
// noise floor, the built-in model, and the comparison, also of a trace alone.
func TestWhatTakesLongShowsHowFarItIs(t *testing.T) {
	var all []*told
	e := &settings.Env{Dir: t.TempDir(), Notes: io.Discard, Errors: io.Discard, Progress: func(what, _ string, bytes func() int64) settings.Progress {
		all = append(all, &told{what: what, bytes: bytes})
		return all[len(all)-1]
	}}
	s := settings.Defaults()
	s.Scope.Level = 1
	s.Tokens, s.Reference = "2", settings.Source{Kind: settings.KindGo}
	if _, err := Compare(context.Background(), e, s, Asked{Limits: &gate.Limits{}, All: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := Alone(context.Background(), e, settings.Defaults(), Asked{Limits: &gate.Limits{}}, e.Dir+"/gate/local.safetensors"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"reading the tokenizer", "capturing the reference walk", "storing the reference", "measuring the noise floor", "measuring the noise floor, comparing",
		"capturing the built-in model", "comparing and verifying", "verifying",
	}
	for i, p := range all {
		if i >= len(want) || p.what != want[i] {
			t.Fatalf("%d: %q, want %q", i, p.what, want)
		}
		if said := strings.Join(p.doing, "\n"); strings.Contains(said, "layers.0.mlp.down_proj") != strings.Contains(p.what, "verifying") {
			t.Errorf("%s: it says %q of what is computed", p.what, said)
		}
		if one := p.bytes == nil; one && p.done == 1 && p.all == 1 { // a file
			continue
		}
		if p.done != 1 || p.all == 0 || p.steps < p.all*3/4 || p.most < 1000 {
			t.Errorf("%s: done %d times, at step %d of %d, %d bytes", p.what, p.done, p.steps, p.all, p.most)
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d of %d", len(all), len(want))
	}
}
