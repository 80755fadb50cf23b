package diagnose

import (
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

// sentence is a mistake or a relation, what it says, and its page for an entry of a role.
type sentence struct {
	mistake  Mistake
	relation Relation
	says     string
	role     string
	page     string // without that of the document
}

// holds checks sentences of some rows, each of which has one.
func holds(t *testing.T, rows []Row, all []sentence) {
	t.Helper()
	seen := map[Kind]bool{}
	for _, s := range all {
		kind, says, page := s.mistake.Kind, s.mistake.String(), s.mistake.page(s.role)
		if s.relation.Kind != "" {
			kind, says, page = s.relation.Kind, s.relation.String(), s.relation.page(s.role)
		}
		seen[kind] = true
		if says != s.says {
			t.Errorf("%s says\n%s\nnot\n%s", kind, says, s.says)
		}
		want := s.page
		if want != "" {
			want = mistakesPage + want
		}
		if page != want {
			t.Errorf("%s of %s: page %q, not %q", kind, s.role, page, want)
		}
	}
	for _, row := range rows {
		if !seen[row.Kind] {
			t.Errorf("no sentence of %s", row.Kind)
		}
	}
}

// TestCachesSay has a sentence of each kind of mistakes in caches.
func TestCachesSay(t *testing.T) {
	const keys, probs, context = "layers.*.self_attn.keys", "layers.*.self_attn.probs", "layers.*.self_attn.context"
	cache, ofKeys := Term{Kind: TheCache}, cachedTerm("layers.*.self_attn.k_rope")
	rope, kRope := Term{Kind: Operation, Name: "rope"}, tensorTerm("layers.3.self_attn.k_rope")
	before := tensorTerm("layers.3.self_attn.keys")
	before.Before = true
	slots := makeRuns(sourceRun{From: 1, To: 2, Is: 3}, sourceRun{From: 2, To: 3, Is: 4})
	holds(t, cacheRows(), []sentence{
		{mistake: Mistake{Kind: "cache.oldest-kept", Of: cache}, says: "the cache keeps the oldest slots; it should keep the newest", role: keys, page: "evicted-keys"},
		{mistake: Mistake{Kind: "cache.oldest-kept", Of: ofKeys}, says: "the cached layers.*.self_attn.k_rope keeps the oldest slots; it should keep the newest", role: context},
		{
			mistake: Mistake{Kind: "cache.sink", Of: cache, N: 2},
			says:    "the cache keeps the first 2 slots for ever and that many fewer of the newest: an attention sink", role: keys, page: "evicted-keys",
		},
		{
			mistake: Mistake{Kind: "cache.sink", Of: ofKeys, N: 1},
			says:    "the cached layers.*.self_attn.k_rope keeps the first 1 slots for ever and that many fewer of the newest: an attention sink", role: context, page: "evicted-keys",
		},
		{
			mistake: Mistake{Kind: "cache.decode-unwritten", Of: ofKeys},
			says:    "decode steps do not write the cached layers.*.self_attn.k_rope: their slots are 0", role: probs, page: "unwritten-cache-slots",
		},
		{
			mistake: Mistake{Kind: "cache.decode-channels", Of: ofKeys, N: 1, M: 8},
			says:    "decode steps write only the first 1 of 8 channels of the cached layers.*.self_attn.k_rope: the others are 0", role: probs, page: "unwritten-cache-slots",
		},
		{
			mistake: Mistake{Kind: "cache.rows-read-apart", Of: ofKeys, N: 16},
			says:    "the cached layers.*.self_attn.k_rope is stored by channel, and its rows have grown to 16 slots after the prompt: the prompt's slots are read from the wrong places", role: probs, page: "unwritten-cache-slots",
		},
		{
			mistake: Mistake{Kind: "cache.decode-stale", Of: ofKeys},
			says:    "decode steps write the prompt's last slot again into the cached layers.*.self_attn.k_rope: stale", role: keys, page: "stale-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.newest-unwritten", Of: ofKeys},
			says:    "the newest slot of the cached layers.*.self_attn.k_rope is 0: it was not written", role: keys, page: "zero-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.newest-stale", Of: ofKeys},
			says:    "the newest slot of the cached layers.*.self_attn.k_rope repeats the slot before it: stale", role: context,
		},
		{
			mistake: Mistake{Kind: "cache.slots-moved", Of: ofKeys, N: -1},
			says:    "the slots of the cached layers.*.self_attn.k_rope are shifted by -1", role: keys, page: "stale-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.slot-unwritten", Of: ofKeys, Runs: makeRuns(sourceRun{From: 0, To: 1, Is: isZero})},
			says:    "slot 0 of the cached layers.*.self_attn.k_rope is 0: it was not written", role: keys, page: "zero-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.slot-unwritten", Of: cache, Runs: makeRuns(sourceRun{From: 2, To: 3, Is: isZero}, sourceRun{From: 5, To: 6, Is: isZero})},
			says:    "slot 2, 5 of the cache is 0: it was not written", role: keys, page: "zero-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.slot-repeated", Of: cache, Runs: makeRuns(sourceRun{From: 4, To: 5, Is: 3})},
			says:    "slot 4 of the cache repeats slot 3", role: keys, page: "zero-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.slots-repeated", Of: ofKeys, Runs: makeRuns(sourceRun{From: 4, To: 8, Is: 0})},
			says:    "slots 4 to 7 of the cached layers.*.self_attn.k_rope repeat slots 0 to 3", role: keys, page: "zero-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.ring", Of: cache, N: 2, Runs: slots},
			says:    "slots 1, 2 of the cache hold the values of slots 3, 4: a ring buffer of 2 has overwritten them", role: keys, page: "zero-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.slots-of-another", Of: cache, Runs: makeRuns(sourceRun{From: 1, To: 2, Is: isUnknown}, sourceRun{From: 2, To: 3, Is: isUnknown})},
			says:    "slots 1, 2 of the cache hold the values of another slot", role: keys, page: "zero-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.written-elsewhere", Of: cache, Runs: makeRuns(sourceRun{From: 3, To: 4, Is: isZero}, sourceRun{From: 4, To: 5, Is: 3})},
			says:    "slot 3 is 0, slot 4 of the cache holds the value of slot 3: written to the wrong slot", role: keys, page: "zero-cache-slot",
		},
		{mistake: Mistake{Kind: "cache.order", Of: cache}, says: "the slots of the cache are in the wrong order", role: keys, page: "stale-cache-slot"},
		{
			mistake: Mistake{Kind: "cache.other-slots", Of: cache, Runs: slots},
			says:    "the cache holds the wrong slots: slot 1 has what belongs in 3, slot 2 has what belongs in 4", role: keys, page: "stale-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.other-slots", Of: cache, Runs: "0=1;2=-;3"},
			says:    "the cache holds the wrong slots: slot 0 has what belongs in 1, slot 2 is 0, slot 3", role: keys, page: "stale-cache-slot",
		},
		{
			mistake: Mistake{Kind: "result.last-slot", Of: before},
			says:    "the result is only the last slot of layers.*.self_attn.keys of the previous pass", role: "layers.*.self_attn.k_rope", page: "stale-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.operation-taken", Of: rope, By: ofKeys, For: kRope},
			says:    "rope is applied to the cached layers.*.self_attn.k_rope, as in layers.*.self_attn.k_rope", role: context,
		},
		{
			mistake: Mistake{Kind: "cache.operation-taken-before", Of: rope, By: ofKeys, For: tensorTerm("layers.3.self_attn.k_norm")},
			says:    "rope is applied to the cached layers.*.self_attn.k_rope, as in layers.*.self_attn.k_norm, but only to earlier passes", role: keys, page: "keys-cached-before-rotation",
		},
		{
			mistake: Mistake{Kind: "cache.operation-taken-again", Of: rope, By: ofKeys},
			says:    "rope is applied to the cached layers.*.self_attn.k_rope a second time, on reading", role: keys, page: "stale-cache-slot",
		},
		{
			mistake: Mistake{Kind: "cache.operation-taken-again-before", Of: rope, By: ofKeys},
			says:    "rope is applied to the cached layers.*.self_attn.k_rope a second time, on reading, but only to earlier passes", role: context,
		},
		{
			mistake: Mistake{Kind: "cache.rounded", Of: ofKeys, N: 8, By: Term{Kind: ScalesOfTokensAndHeads}},
			says:    "the cached layers.*.self_attn.k_rope is quantised to 8 bits, with a scale per token and head", role: context, page: "quantised-cache",
		},
		{
			mistake: Mistake{Kind: "cache.rounded", Of: ofKeys, N: 4, By: Term{Kind: ScalesOfTokens}},
			says:    "the cached layers.*.self_attn.k_rope is quantised to 4 bits, with a scale per token", role: keys, page: "quantised-cache",
		},
		{
			mistake: Mistake{Kind: "cache.rounded-between", Of: ofKeys, N: 8, By: Term{Kind: ScalesOfHeads}},
			says:    "the cached layers.*.self_attn.k_rope is quantised to 8 bits, with a scale per head, from the minimum to the maximum", role: context, page: "quantised-cache",
		},
		{
			mistake: Mistake{Kind: "cache.rounded-as-the-newest", Of: ofKeys, N: 8, By: Term{Kind: ScalesOfChannels}},
			says:    "the cached layers.*.self_attn.k_rope is quantised to 8 bits, with a scale per channel taken from the newest token: larger values are clipped", role: context, page: "quantised-cache",
		},
		{
			mistake: Mistake{Kind: "cache.rounded-as-the-first", Of: ofKeys, N: 8, By: Term{Kind: OneScale}},
			says:    "the cached layers.*.self_attn.k_rope is quantised to 8 bits, with one scale taken from the first token: larger values are clipped", role: context, page: "quantised-cache",
		},
		{
			mistake: Mistake{Kind: "cache.bits-misread", Of: ofKeys, DType: hooks.F8E4M3, By: dtypeTerm(hooks.F8E5M2)},
			says:    "the cached layers.*.self_attn.k_rope is written in float8_e4m3fn and read as float8_e5m2", role: context, page: "quantised-cache",
		},
		{
			mistake: Mistake{Kind: "cache.rounded-to-multiples", Of: ofKeys, X: some(1. / 16)},
			says:    "the cached layers.*.self_attn.k_rope is quantised to multiples of 0.0625: a fixed scale", role: context, page: "quantised-cache",
		},
	})
}

// TestSlots has what slots hold that they should not, by what each should hold and holds.
func TestSlots(t *testing.T) {
	at := func(index ...int) (all []slot) {
		for _, i := range index {
			all = append(all, slot{0, i})
		}
		return all
	}
	zero := slot{-1, 0}
	for _, tt := range []struct {
		right, now []slot
		want       Mistake
	}{
		{at(0, 1, 2), []slot{{0, 0}, zero, zero}, Mistake{Kind: "cache.slot-unwritten", Runs: "1=-;2=-"}},
		{at(0, 1, 2), at(2, 0, 1), Mistake{Kind: "cache.order"}},
		{at(0, 1, 2), at(0, 1, 1), Mistake{Kind: "cache.slot-repeated", Runs: "2=1"}},
		{at(0, 1, 2, 3), at(2, 3, 2, 3), Mistake{Kind: "cache.ring", N: 2, Runs: "0=2;1=3"}},
		{at(0, 1, 2, 3, 4), at(0, 3, 4, 3, 4), Mistake{Kind: "cache.slots-repeated", Runs: "1=3;2=4"}}, // a ring of 2 has no token 0
		{at(0, 1, 2, 3), at(0, 9, 9, 3), Mistake{Kind: "cache.slots-of-another", Runs: "1;2"}},
		{at(0, 1, 2), []slot{{0, 0}, zero, {0, 1}}, Mistake{Kind: "cache.written-elsewhere", Runs: "1=-;2=1"}},
		{at(4, 5, 6, 7), at(0, 5, 6, 7), Mistake{Kind: "cache.sink", N: 1}},
		{at(4, 5, 6), at(2, 3, 4), Mistake{Kind: "cache.oldest-kept"}},
		{at(4, 5, 6), at(9, 8, 7), Mistake{Kind: "cache.other-slots", Runs: "0;1;2"}},
		{at(0, 1, 2, 3), []slot{{0, 1}, {0, 2}, zero, {0, 3}}, Mistake{Kind: "cache.other-slots", Runs: "0=1;1=2;2=-"}},
	} {
		tt.want.Place, tt.want.Of = cacheSite, Term{Kind: TheCache}
		if got := slotMistake(tt.right, tt.now); got != tt.want {
			t.Errorf("%v for %v: %+v, not %+v", tt.now, tt.right, got, tt.want)
		}
	}
}

// TestRunsAreReadBack has runs as a value, each kind of them.
func TestRunsAreReadBack(t *testing.T) {
	all := []sourceRun{{From: 0, To: 4, Is: 4}, {From: 7, To: 8, Is: isZero}, {From: 9, To: 10, Is: isUnknown}, {From: 11, To: 13, Is: 0, Of: "w"}}
	runs := makeRuns(all...)
	if runs != "0-3=4;7=-;9;11-12=0@w" {
		t.Error(runs)
	}
	back := runs.list()
	if len(back) != len(all) {
		t.Fatal(back)
	}
	for k := range all {
		if back[k] != all[k] {
			t.Errorf("%+v came back as %+v", all[k], back[k])
		}
	}
}
