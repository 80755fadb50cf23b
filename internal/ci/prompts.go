package ci

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

const (
	// otherDraws are how many prompts of other ids are tried where a mistake needs other numbers.
	otherDraws  = 2
	leastTokens = 6
	// sightOfPrompt bounds what is computed for each prompt: about ten seconds.
	sightOfPrompt = 1 << 31
)

// candidate is a prompt with what it shows.
type candidate struct {
	passes [][]int
	sight  *detectable.Sight
}

// model is a model whose prompts are tried.
type model struct {
	ck    *checkpoint.Checkpoint
	list  *order.List
	dtype hooks.DType
}

// Prompts proposes a small set of prompts, each of at most most tokens. Together they detect every usual mistake
// detected by any of the candidates, and no prompt of the set is redundant. Detection is judged on the float64 walk
// of the model, captured at level 3 like a port.
func Prompts(ctx context.Context, e *settings.Env, s settings.Settings, most int) (p *report.Prompts, err error) {
	ck, _, err := origin.Open(s.Model)
	if err != nil {
		return nil, err
	}
	defer func() { err = hint.Also(err, ck.Close()) }()
	tried := &model{ck: ck}
	config, err := order.ReadConfig(ck.Config())
	if err == nil {
		tried.list, err = order.New(config)
	}
	if order.Undescribed(err) {
		return nil, hint.Add(fmt.Errorf("%s: no order describes its family: prompts runs the walk over prompts of many lengths, and a recorded program holds only for the prompt of its run", ck.Name()),
			"choose a prompt yourself, longer than the sliding window and with decode steps, and record it: tracediff capture --side reference --reference hf --max-new-tokens 2")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ck.Name(), err)
	}
	if err := gemma.CheckWeights(ck, tried.list); err != nil {
		return nil, err
	}
	if tried.dtype, err = s.ComputedIn(config.DType); err != nil {
		return nil, err
	}
	all, err := tried.candidates(ctx, e, min(most, config.MaxPositions-1))
	if err != nil {
		return nil, err
	}
	p = &report.Prompts{Model: ck.Name(), DType: tried.dtype.String(), Tried: len(all), Prompts: []report.Prompt{}}
	chosen := cover(all)
	p.Sight = united(chosen)
	for _, c := range chosen {
		one := report.Prompt{Tokens: tokensOf(c.passes), Length: len(c.passes[0]), Steps: len(c.passes) - 1, Seen: len(c.sight.Seen), Alone: []string{}}
		for _, name := range c.sight.Seen {
			if !slices.ContainsFunc(chosen, func(o *candidate) bool { return o != c && slices.Contains(o.sight.Seen, name) }) {
				one.Alone = append(one.Alone, name)
			}
		}
		p.Prompts = append(p.Prompts, one)
	}
	return p, nil
}

// candidates returns the prompts to try: for each mistake a prompt of the required length with a decode step, and
// extra prompts for mistakes with a need for other token ids.
func (m *model) candidates(ctx context.Context, e *settings.Env, most int) ([]*candidate, error) {
	var lengths []int
	id := 0
	for _, k := range diagnose.Usuals(m.list) {
		n := k.Needs(m.list.Config)
		id = max(id, n.ID)
		lengths = append(lengths, max(n.Tokens, n.Total, n.Before, leastTokens))
	}
	slices.Sort(lengths)
	lengths = slices.DeleteFunc(slices.Compact(lengths), func(n int) bool { return n > most })
	if len(lengths) == 0 {
		lengths = []int{max(most, 1)}
	}
	var all []*candidate
	try := func(n int, seed uint64) error {
		c := &candidate{passes: m.drawn(n, id, seed)}
		err := m.look(ctx, e, c)
		all = append(all, c)
		return err
	}
	for k, n := range lengths {
		if err := try(n, uint64(k)); err != nil {
			return nil, err
		}
	}
	for seed := range uint64(otherDraws) {
		if !slices.ContainsFunc(united(all).Unseen, func(u detectable.Unseen) bool { return u.ShownBy == detectable.ByNumbers || u.Rounding }) {
			break
		}
		if err := try(lengths[min(1, len(lengths)-1)], 100+seed); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// drawn returns random ids for a prompt and for one step after it. A model with BOS begins with BOS, and one id is
// at least id.
func (m *model) drawn(n, id int, seed uint64) [][]int {
	c := m.list.Config
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	ids := make([]int, n)
	for i := range ids {
		ids[i] = rng.IntN(c.VocabSize)
	}
	if bos := c.Tokens.BOS; bos >= 0 && bos < c.VocabSize {
		ids[0] = bos
	}
	if id > 0 && id < c.VocabSize {
		ids[n-1] = id + rng.IntN(c.VocabSize-id)
	}
	return [][]int{ids, {rng.IntN(c.VocabSize)}}
}

// look walks over a prompt and asks what it shows.
func (m *model) look(ctx context.Context, e *settings.Env, c *candidate) (err error) {
	dir, err := files.MkdirTemp("tracediff-prompts-*")
	if err != nil {
		return err
	}
	defer func() { err = hint.Also(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "walk.safetensors")
	p := e.Begin(fmt.Sprintf("trying %d tokens", len(c.passes[0])), "entry", settings.Growing(path))
	defer p.Done()
	made := capture.Manifest{Model: m.ck.Name(), Scope: capture.Scope{Level: 3}}
	for i := range m.list.Entries { // which transformers does not show
		if o := &m.list.Entries[i]; o.Derived() {
			made.Derived = append(made.Derived, o.Name)
		}
	}
	job := reference.Job{Checkpoint: m.ck, List: m.list, DType: m.dtype, Passes: c.passes, Manifest: made, Path: path, Watch: reference.Watch{Progress: p.Step}}
	if _, err := reference.Walk(ctx, job); errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	} else if err != nil {
		return err
	}
	t, err := capture.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = hint.Also(err, t.Close()) }()
	i, err := compare.NewIsolator(t, m.list, reference.Weights(m.ck, m.dtype), isolate.Options{DType: m.dtype})
	if err != nil {
		return err
	}
	c.sight, err = detectable.Find(ctx, i.Forms, sightOfPrompt, nil)
	return err
}

func united(all []*candidate) *detectable.Sight {
	var of []*detectable.Sight
	for _, c := range all {
		of = append(of, c.sight)
	}
	return detectable.Unite(of)
}

func (c *candidate) tokens() int {
	n := 0
	for _, p := range c.passes {
		n += len(p)
	}
	return n
}

// cover is a greedy set cover: it adds the candidate with the most new mistakes, ties going to the shortest prompt,
// and finally removes redundant candidates.
func cover(all []*candidate) []*candidate {
	shown := func(of []*candidate) int { return len(united(of).Seen) }
	var chosen []*candidate
	for len(chosen) == 0 || shown(chosen) < shown(all) {
		best := slices.MinFunc(all, func(a, b *candidate) int {
			if x, y := shown(append(slices.Clone(chosen), a)), shown(append(slices.Clone(chosen), b)); x != y {
				return y - x
			}
			return a.tokens() - b.tokens()
		})
		chosen = append(chosen, best)
	}
	for i := 0; i < len(chosen) && len(chosen) > 1; {
		if rest := slices.Delete(slices.Clone(chosen), i, i+1); shown(rest) == shown(all) {
			chosen = rest
		} else {
			i++
		}
	}
	return chosen
}

// tokensOf are passes as --tokens takes them.
func tokensOf(passes [][]int) string {
	var all []string
	for _, ids := range passes {
		var one []string
		for _, id := range ids {
			one = append(one, strconv.Itoa(id))
		}
		all = append(all, strings.Join(one, ","))
	}
	return strings.Join(all, ";")
}
