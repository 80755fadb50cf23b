package diagnose

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
)

// pick draws rooms for each kind, and in each room a mistake and its neighbour.
func pick(byKind map[Kind][]*plant, most int) (all []*plant, unchanging map[Kind][]*plant) {
	unchanging = map[Kind][]*plant{}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		in, tried := map[*room]int{}, 0
		for _, p := range inDrawOrder(byKind[kind]) {
			if in[p.room] == 0 && len(in) == most || in[p.room] == 2 {
				continue
			}
			wrong, shown, rows := p.make(p.is)
			if tried++; shown >= shownElements+3 && rows >= shownRows {
				in[p.room]++
				all = append(all, p)
			} else if len(wrong) == 0 {
				unchanging[kind] = append(unchanging[kind], p)
			}
			if tried > 40*most {
				break
			}
		}
	}
	return all, unchanging
}

// What is tested is said at doc.
func TestSound(t *testing.T) {
	rooms := make([][]*room, len(soundModels))
	t.Run("yield", func(t *testing.T) {
		for k, c := range soundModels {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				m := soundModel(t, c.family, c.seed, c.config)
				rooms[k] = roomsOf(t, m, c.name)
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
	all, unchanging := pick(byKind, *draws)
	perModel := map[*Model][]*plant{}
	for _, p := range all {
		perModel[p.m] = append(perModel[p.m], p)
	}
	t.Run("find", func(t *testing.T) {
		for m, plants := range perModel {
			t.Run(strings.Fields(plants[0].name)[0], func(t *testing.T) {
				t.Parallel()
				_ = m
				for _, p := range plants {
					p.look(t)
				}
			})
		}
	})
	w, err := os.Create(os.Getenv("SOUND_OUT"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	have := map[Kind]bool{}
	for _, p := range all {
		have[p.is.Kind] = true
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.outcome, p.is.Kind, p.as, p.name, p.is.Key(), p.found)
	}
	for k, ps := range unchanging {
		for _, p := range ps[:min(len(ps), 3)] {
			fmt.Fprintf(w, "unchanging\t%s\t%d\t%s\t%s\n", k, len(ps), p.name, p.is.Key())
		}
	}
	var lack []string
	for _, row := range Catalogue() {
		if !have[row.Kind] {
			lack = append(lack, string(row.Kind))
		}
	}
	sort.Strings(lack)
	fmt.Fprintf(w, "lack\t%s\n", strings.Join(lack, " "))
}
