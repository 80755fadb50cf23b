package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program/edit"
)

// cacheRows are mistakes in caches.
func cacheRows() []Row {
	return []Row{
		{Kind: "cache.oldest-kept", Words: "{of} keeps the oldest slots; it should keep the newest", Pages: pagesWithNames([]Page{onRoles("evicted-keys", caches)}, nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.sink", Words: "{of} keeps the first {n} slots for ever and that many fewer of the newest: an attention sink", Pages: []Page{onRoles("evicted-keys", "")}, Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.decode-unwritten", Words: "decode steps do not write {of}: their slots are 0", Pages: pagesWithNames(ofSlots, nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.decode-stale", Words: "decode steps write the prompt's last slot again into {of}: stale", Pages: pagesWithNames(ofSlots, nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: grownCache, Words: "{of} is stored by channel, and its rows have grown to {n} slots after the prompt: the prompt's slots are read from the wrong places", Pages: pagesWithNames(ofSlots, nil), Apply: readApart, Class: edit.Known},
		{Kind: partOfSteps, Words: "decode steps write only the first {n} of {m} channels of {of}: the others are 0", Pages: pagesWithNames(ofSlots, nil), Apply: firstChannels, Class: edit.Known},
		{Kind: "cache.newest-unwritten", Words: "the newest slot of {of} is 0: it was not written", Pages: pagesWithNames(ofHeldSlots, nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.newest-stale", Words: "the newest slot of {of} repeats the slot before it: stale", Pages: pagesWithNames(ofHeldSlots, nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.slots-moved", Words: "the slots of {of} are shifted by {n}", Pages: pagesWithNames(ofSlots, ofOrder, onRoles("altup-router", routers), onRoles("active-stream", `active_prediction$|altup\.`), onRoles("crossed-projections", `^altup_`)), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.slot-unwritten", Words: "slot {at} of {of} is 0: it was not written", Pages: pagesWithNames(ofHeldSlots, nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.slot-repeated", Words: "slot {at} of {of} repeats slot {are}", Pages: pagesWithNames(ofHeldSlots, nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.slots-repeated", Words: "slots {at} of {of} repeat slots {are}", Pages: pagesWithNames(ofHeldSlots, nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.ring", Words: "slots {at} of {of} hold the values of slots {are}: a ring buffer of {n} has overwritten them", Pages: pagesWithNames(append([]Page{onRoles("window-size", masks)}, ofHeldSlots...), nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.slots-of-another", Words: "slots {at} of {of} hold the values of another slot", Pages: pagesWithNames(ofHeldSlots, nil, onRoles("crossed-projections", `^altup_`)), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{
			Kind: "cache.written-elsewhere", Words: "{each}: written to the wrong slot",
			Each: "slot {at} of {of} holds the value of slot {are}", Zero: "slot {at} is 0", Between: ", ",
			Pages: pagesWithNames([]Page{onRoles("unwritten-cache-slots", "probs"), {Anchor: "zero-cache-slot", Roles: caches, If: holdsAnother}}, nil, onRoles("crossed-projections", `^altup_`)),
			Apply: otherSlots, Class: edit.Known, Solved: solvedSlots,
		},
		{Kind: "cache.order", Words: "the slots of {of} are in the wrong order", Pages: pagesWithNames(ofSlots, ofOrder, onRoles("crossed-projections", `^altup_`)), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "cache.other-slots", Words: "{of} holds the wrong slots: {each}", Each: "slot {at} has what belongs in {are}", Zero: "slot {at} is 0", Unknown: "slot {at}", Between: ", ", Pages: pagesWithNames(ofSlots, nil), Apply: otherSlots, Class: edit.Known, Solved: solvedSlots},
		{Kind: "result.last-slot", Words: "the result is only the last slot of {of}", Pages: pagesWithNames(append([]Page{onRoles("stale-cache-slot", rotated)}, ofSlots...), []Page{onRoles("positions-of-decode-steps", tables)}), Apply: lastSlot, Class: edit.InputOf},

		// An operation of what a cache holds.
		{Kind: "cache.operation-taken", Words: "{of} is applied to {by}, as in {for}", Pages: pagesWithNames(nil, nil), Apply: takenOfCached, Class: edit.Inserted},
		{Kind: "cache.operation-taken-before", Words: "{of} is applied to {by}, as in {for}, but only to earlier passes", Pages: pagesWithNames(nil, nil), Apply: takenOfCached, Class: edit.Inserted},
		{Kind: "cache.operation-taken-again", Words: "{of} is applied to {by} a second time, on reading", Pages: pagesWithNames(nil, nil), Apply: takenOfCached, Class: edit.Inserted},
		{Kind: "cache.operation-taken-again-before", Words: "{of} is applied to {by} a second time, on reading, but only to earlier passes", Pages: pagesWithNames(nil, nil), Apply: takenOfCached, Class: edit.Inserted},

		// Few bits.
		{Kind: "cache.rounded", Words: "{of} is quantised to {n} bits, with {by}", Pages: []Page{onRoles("quantised-cache", "")}, Apply: packedCache, Class: edit.Inserted, After: []Kind{"tensor.rounded"}},
		{Kind: "cache.rounded-between", Words: "{of} is quantised to {n} bits, with {by}, from the minimum to the maximum", Pages: []Page{onRoles("quantised-cache", "")}, Apply: packedCache, Class: edit.Inserted},
		{Kind: "cache.rounded-as-the-newest", Words: "{of} is quantised to {n} bits, with {by} taken from the newest token: larger values are clipped", Pages: []Page{onRoles("quantised-cache", "")}, Apply: packedCache, Class: edit.Inserted},
		{Kind: "cache.rounded-as-the-first", Words: "{of} is quantised to {n} bits, with {by} taken from the first token: larger values are clipped", Pages: []Page{onRoles("quantised-cache", "")}, Apply: packedCache, Class: edit.Inserted},
		{Kind: cacheMisread, Words: "{of} is written in {dtype} and read as {by}", Pages: []Page{onRoles("quantised-cache", "")}, Apply: packedCache, Class: edit.Inserted},
		{Kind: "cache.rounded-to-multiples", Words: "{of} is quantised to multiples of {x}: a fixed scale", Pages: []Page{onRoles("quantised-cache", "")}, Apply: packedCache, Class: edit.Inserted, Solved: oneNumber},
	}
}

// ofSlots, ofHeldSlots and ofOrder are the pages of wrong slots, of wrong content of slots, and of a wrong order of slots.
var (
	ofSlots     = []Page{onRoles("unwritten-cache-slots", "probs")}
	ofHeldSlots = []Page{onRoles("unwritten-cache-slots", "probs"), onRoles("zero-cache-slot", caches)}
	ofOrder     = []Page{
		onRoles("rotary-pairs", tables), onRoles("head-layout", rotated), onRoles("permuted-query-and-key-rows", "self_attn.[qk]_proj$"), onRoles("per-layer-rows", "per_layer_inputs?$"),
	}
)

// holdsAnother reports whether a slot holds the token of another slot.
func holdsAnother(m Mistake) bool {
	return slices.ContainsFunc(m.Runs.list(), func(r sourceRun) bool { return r.Is != isZero })
}
