package names

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/internal/spelling"
)

// A name may say which rank, or which stage of a pipeline, has the tensor: "rank1/layers.0.out", "stage0.layers.1.out".
var rankText = regexp.MustCompile(`(?i)^(|.*?[-_./])(` + spelling.RankWords + `)([-_=.]?)([0-9]{1,4})([-_./].*|)$`)

// stageWords are words for stages of a pipeline. Only one stage has the tensors of a layer.
var stageWords = regexp.MustCompile(`(?i)^(` + spelling.StageWords + `|pp_?rank)$`)

// Rank is the number of a rank or stage in a name. The zero value is a name without rank.
type Rank struct {
	group   string // the text in front of the number; "" for none
	word    string
	Number  int
	Written string // the number as it is written
}

// here stands for the number of a rank in a name. A name that contains it already has no rank.
const here = "\x00"

// marked puts a sign in the place of a rank's number.
func marked(name string) (string, Rank) {
	m := rankText.FindStringSubmatch(name)
	if m == nil || len(name) > maxName || strings.Contains(name, here) {
		return name, Rank{}
	}
	n, _ := strconv.Atoi(m[4])
	group := m[1] + m[2] + m[3]
	return group + here + m[5], Rank{group, m[2], n, m[4]}
}

// unmark puts a number back into the name if it is not the number of a rank: if no tensor has another number at this place, or if a word
// such as stage counts layers because the names have no other number.
func unmark(all []*Occurrence, layers int) {
	ranks, layered := numbersOf{}, map[string]bool{}
	for _, x := range all {
		g := x.Rank.group
		if g == "" {
			continue
		}
		ranks.add(g, x.Rank.Number)
		layered[g] = layered[g] || slices.ContainsFunc(readings(x.rest, layers), func(n Reading) bool { return n.sure && !n.beyond })
	}
	for _, x := range all {
		if g := x.Rank.group; g != "" && (len(ranks[g]) < 2 || stageWords.MatchString(x.Rank.word) && !layered[g]) {
			x.rest, x.Rank = x.Record.Name, Rank{}
		}
	}
}

// numbering is how the stages of a pipeline count their layers: offsets has how many layers are before each stage. Those of
// stages that count all layers are 0.
type numbering struct {
	offsets map[int]int
	sure    bool // they are stages, and not ranks that have all layers
}

// numberings finds the groups of names that may be stages.
func numberings(all []*Occurrence, layers int) map[string]numbering {
	sets := map[string]map[int]map[int]bool{} // the layers of each rank of a group
	words := map[string]string{}
	for _, x := range all {
		g := x.Rank.group
		if g == "" || x.Best.Layer < 0 {
			continue
		}
		if sets[g] == nil {
			sets[g] = map[int]map[int]bool{}
		}
		if sets[g][x.Rank.Number] == nil {
			sets[g][x.Rank.Number] = map[int]bool{}
		}
		sets[g][x.Rank.Number][x.Best.Layer] = true
		words[g] = x.Rank.word
	}
	out := map[string]numbering{}
	for g, of := range sets {
		if len(of) < 2 {
			continue
		}
		sum, seen := 0, map[int]bool{}
		fromZero, apart := true, true
		n := numbering{offsets: map[int]int{}, sure: stageWords.MatchString(words[g])}
		for _, rank := range keysOf(of) {
			n.offsets[rank] = sum
			sum += len(of[rank])
			for layer := range of[rank] {
				fromZero = fromZero && layer < len(of[rank])
				apart = apart && !seen[layer]
				seen[layer] = true
			}
		}
		switch {
		case apart:
			for rank := range n.offsets {
				n.offsets[rank] = 0
			}
			n.sure = true
			out[g] = n
		case fromZero && sum == layers:
			out[g] = n
		}
	}
	return out
}
