package diagnose

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// A plant shows what it is by a few elements more than a search asks for, so that one for each number that is solved is there.
const plantShows = shownElements + 3

// Each of so many plants is searched for in another order of the stages as well.
const inAnotherOrder = 3

// pick draws roles for each kind, and in each role a mistake and its neighbour: the next mistake of the kind that makes other values. It returns those that change nothing as well.
func pick(byKind map[Kind][]*plant, most int) (all []*plant, unchanged []*plant) {
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		in, tried := map[*room]int{}, 0
		for _, p := range inDrawOrder(byKind[kind]) {
			if in[p.room] == 0 && len(in) == most || in[p.room] == 2 {
				continue
			}
			if tried++; tried > 40*most {
				break
			}
			goes, wrong, shown, rows := p.make(p.is)
			if goes && len(wrong) == 0 {
				unchanged = append(unchanged, p)
			}
			if shown >= plantShows && rows >= shownRows {
				in[p.room]++
				all = append(all, p)
			}
		}
	}
	return all, unchanged
}

// candidates are the mistakes of all roles of the random models, by kind.
func candidates(t *testing.T) map[Kind][]*plant {
	rooms := make([][]*room, len(soundModels))
	t.Run("yield", func(t *testing.T) {
		for k, c := range soundModels {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				rooms[k] = roomsOf(t, soundModel(t, c.family, c.seed, c.config), c.name)
				for _, r := range rooms[k] {
					r.yield(t)
				}
			})
		}
	})
	byKind := map[Kind][]*plant{}
	for _, r := range slices.Concat(rooms...) {
		for _, is := range r.all {
			byKind[is.Kind] = append(byKind[is.Kind], &plant{room: r, is: is})
		}
	}
	return byKind
}

// lookAll searches for all plants, those of each model one after the other.
func lookAll(t *testing.T, all []*plant) {
	byModel := map[string][]*plant{}
	for _, p := range all {
		model, _, _ := strings.Cut(p.name, " ")
		byModel[model] = append(byModel[model], p)
	}
	t.Run("find", func(t *testing.T) {
		for model, plants := range byModel {
			t.Run(model, func(t *testing.T) {
				t.Parallel()
				for k, p := range plants {
					if p.look(t); k%inAnotherOrder == 0 {
						p.lookInAnotherOrder(t, uint64(k)+1)
					}
					p.describe(t)
				}
			})
		}
	})
}

// The generators of all stages yield mistakes for every role of random models. Some of each kind are drawn, made in the tensors of the role, and searched for. A mistake
// changes values. It gets its own name, with its numbers, or the name of a kind that says the same there, or no name since several mistakes of other values are left
// that include it. The order of the stages decides nothing of it. Two neighbours, of one kind in one role, do not share a name. Each kind of the catalogue is made somewhere, or is listed with the reason.
func TestMistakesOfAllKindsAreFound(t *testing.T) {
	if os.Getenv("TRACEDIFF_KINDS") == "" {
		t.Skip("needs TRACEDIFF_KINDS: that it is asked for")
	}
	all, unchanged := pick(candidates(t), *draws)
	lookAll(t, all)
	if t.Failed() {
		return
	}
	made, used := map[Kind]bool{}, map[int]bool{}
	for _, p := range all {
		made[p.is.Kind] = true
		k, fine := p.fine()
		if used[k] = true; !fine {
			t.Errorf("%s: %s is planted, and the outcome is %s: %s", p.name, p.is.Key(), p.outcome, p.found)
		}
	}
	neighbours(t, all)
	for kind, back := range comeBack(all) {
		if out := lineOf(notBack, kind) >= 0; back == out {
			t.Errorf("%s comes back with its numbers: %t; it is listed as one that does not: %t", kind, back, out)
		}
	}
	for k, same := range sayTheSame {
		if !used[k] {
			t.Errorf("no %s is said to be %s", same.kinds, same.as)
		}
	}
	none := map[int]bool{}
	for _, p := range unchanged {
		k := lineOf(changeNothing, p.is.Kind)
		if none[k] = true; k < 0 {
			t.Errorf("%s: %s changes nothing", p.name, p.is.Key())
		}
	}
	for k, c := range changeNothing {
		if !none[k] {
			t.Errorf("all of %s change something", c.kinds)
		}
	}
	for _, row := range Catalogue() {
		if out := lineOf(notReached, row.Kind) >= 0; made[row.Kind] == out {
			t.Errorf("%s is made in a model: %t; it is listed as one that is not: %t", row.Kind, made[row.Kind], out)
		}
	}
	if file := os.Getenv("TRACEDIFF_SOUND"); file != "" {
		write(t, file, all)
	}
}

// fine reports whether the outcome is right, by which line of sayTheSame if by any; -1 for none.
func (p *plant) fine() (by int, fine bool) {
	switch p.outcome {
	case itself, among:
		return -1, true
	case aliased, stated:
		by = slices.IndexFunc(sayTheSame, func(c struct{ kinds, as, why string }) bool {
			return beginsWith(p.is.Kind, c.kinds) && beginsWith(p.as, c.as)
		})
		return by, by >= 0
	case unnamed:
		return -1, lineOf(notNamed, p.is.Kind) >= 0
	}
	return -1, false
}

// neighbours holds two plants of a kind in a role to different names, unless their values are equal.
func neighbours(t *testing.T, all []*plant) {
	t.Helper()
	for k, p := range all {
		for _, o := range all[k+1:] {
			if o.room == p.room && o.is.Kind == p.is.Kind && o.is.Key() != p.is.Key() && p.outcome != among && o.outcome != among && o.found == p.found && !p.equals(t, o.is) {
				t.Errorf("%s: %s and its neighbour %s have one name, %s", p.name, p.is.Key(), o.is.Key(), p.found)
			}
		}
	}
}

// comeBack reports for each kind whether two neighbours in a role have both their own names, or one plant has, where no role has two.
func comeBack(all []*plant) map[Kind]bool {
	type place struct {
		in   *room
		kind Kind
	}
	keys, own, most := map[place]map[string]bool{}, map[place]int{}, map[Kind]int{}
	for _, p := range all {
		at := place{p.room, p.is.Kind}
		if keys[at] == nil {
			keys[at] = map[string]bool{}
		}
		if key := p.is.Key(); !keys[at][key] {
			if keys[at][key] = true; p.outcome == itself {
				own[at]++
			}
		}
		most[at.kind] = max(most[at.kind], len(keys[at]))
	}
	back := map[Kind]bool{}
	for at := range keys {
		back[at.kind] = back[at.kind] || own[at] == most[at.kind]
	}
	return back
}

// write writes what came of each plant, one a line.
func write(t *testing.T, file string, all []*plant) {
	t.Helper()
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\t%s\n", p.outcome, p.is.Kind, p.as, p.name, p.is.Key(), p.found)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
