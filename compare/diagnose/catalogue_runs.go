package diagnose

import (
	"fmt"
	"strings"
)

// sourceRun is a run of wrong rows, channels or slots.
type sourceRun struct {
	From, To int    // the first index, and the index after the last
	Is       int    // where the content at From comes from; isZero for zeros, isUnknown for unknown content
	Of       string // the role of a tensor or weight that has the content; empty for the tensor itself
}

// The values of Run.Is for a run of zeros, and for a run of unknown content.
const (
	isZero    = -1
	isUnknown = -2
)

// Runs are runs as a value. "0-3=4;7=0" are two runs: 0 to 3 are 4 to 7, and 7 is 0. "0-3=-" is a run of zeros, "0-3=4@layers.*.mlp.up_proj.weight" is a run of
// rows of another weight, and "0-3" is a run that is wrong in an unknown way.
type Runs string

// makeRuns writes runs.
func makeRuns(all ...sourceRun) Runs {
	var parts []string
	for _, r := range all {
		text := fmt.Sprintf("%d-%d", r.From, r.To-1)
		if r.To == r.From+1 {
			text = fmt.Sprint(r.From)
		}
		switch {
		case r.Is >= 0:
			text += fmt.Sprintf("=%d", r.Is)
		case r.Is == isZero:
			text += "=-"
		}
		if r.Of != "" {
			text += "@" + r.Of
		}
		parts = append(parts, text)
	}
	return Runs(strings.Join(parts, ";"))
}

// list reads runs that makeRuns has written.
func (r Runs) list() []sourceRun {
	var all []sourceRun
	for text := range strings.SplitSeq(string(r), ";") {
		text, of, _ := strings.Cut(text, "@")
		at, is, known := strings.Cut(text, "=")
		run := sourceRun{Is: isZero, Of: of}
		if !known {
			run.Is = isUnknown
		}
		if n, _ := fmt.Sscanf(at, "%d-%d", &run.From, &run.To); n < 2 {
			run.To = run.From
		}
		run.To++
		_, _ = fmt.Sscanf(is, "%d", &run.Is) // "-" stays zeros
		all = append(all, run)
	}
	return all
}

// How many runs, and how many rows of a block, a sentence lists.
const (
	mostRuns   = 3
	mostListed = 16
)

// said are the runs of a sentence: the first ones.
func (r Runs) said() []sourceRun {
	all := r.list()
	return all[:min(len(all), mostRuns)]
}

// words says where the content of the first runs comes from, with a noun: "rows 0 to 3 are rows 4 to 7; row 7 is 0".
func (r Runs) words(noun string) string {
	var all []string
	for _, run := range r.said() {
		are := " are "
		if run.To == run.From+1 {
			are = " is "
		}
		text := spanWords(noun, run.From, run.To) + are
		if run.Is < 0 {
			text += "0"
		} else {
			text += spanWords(noun, run.Is, run.Is+run.To-run.From)
		}
		if run.Of != "" {
			text += " of " + run.Of
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// spanWords is a run by its first and last index: "rows 4 to 7", "row 7". The index to is not in the run.
func spanWords(noun string, from, to int) string {
	if to != from+1 {
		noun += "s"
	}
	return noun + " " + endsWords(from, to)
}

// wholeOf follows the name of a tensor if the run has the whole tensor.
const wholeOf = "[:]"

// pieces names the part of a packed matrix from which each run comes: "self_attn.q_proj, rows 0 to 3 of self_attn.k_proj".
func (r Runs) pieces() string {
	var all []string
	for _, run := range r.list() {
		if name, whole := strings.CutSuffix(run.Of, wholeOf); whole {
			all = append(all, name)
		} else {
			all = append(all, fmt.Sprintf("rows %d to %d of %s", run.From, run.To-1, name))
		}
	}
	return listed(all)
}

// order lists where each of n parts comes from: "0, 2, 1, 3".
func (r Runs) order(n int) string {
	var all []string
	for _, run := range r.list() {
		all = append(all, fmt.Sprint(run.Is))
	}
	all = all[:min(len(all), mostListed)]
	if n > len(all) {
		all = append(all, "...")
	}
	return listed(all)
}

// listed puts a comma between words.
func listed(words []string) string { return strings.Join(words, ", ") }

// undoesWords says that a factor undoes the factor of a tensor.
func undoesWords(fields, tensor string) string {
	if fields != "" {
		fields += ": "
	}
	return fields + "as where " + tensor + " is read before it is scaled"
}

// insteadOf says that fields have been used instead of others. reciprocalWords is the reciprocal of a number, and productWords is a product of two fields.
func insteadOf(fields, right string) string {
	return strings.ReplaceAll(fields, ", ", " or ") + ", not " + right
}

func reciprocalWords(x float64) string { return "1/" + short(x) }

func productWords(one, other string) string { return one + " · " + other }

// interleavedRows lists the first rows of a block that is read with its axes exchanged.
func interleavedRows(size, columns int) string {
	var all []string
	for i := range min(size, 8) {
		all = append(all, fmt.Sprint(inTurn(i, size, columns)))
	}
	if size > 8 {
		all = append(all, "...")
	}
	return listed(all)
}

// at lists the indexes of the runs: "1, 3, 5 to 7".
func (r Runs) at() string {
	var all []string
	for _, run := range r.list() {
		all = append(all, endsWords(run.From, run.To))
	}
	return strings.Join(all, ", ")
}

// are lists where the content of the runs comes from: "0, 2, 8 to 10".
func (r Runs) are() string {
	var all []string
	for _, run := range r.list() {
		all = append(all, endsWords(run.Is, run.Is+run.To-run.From))
	}
	return strings.Join(all, ", ")
}

// endsWords is a run by its first and last index, without a noun. The index to is not in the run.
func endsWords(from, to int) string {
	if to == from+1 {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d to %d", from, to-1)
}

// each fills the hole {each}: the row has the words for one run.
func (m Mistake) each() string {
	row := catalogue()[m.Kind]
	var all []string
	for _, run := range m.Runs.list() {
		one, words := m, row.Each
		switch one.Runs = makeRuns(run); {
		case run.Is == isZero:
			words = row.Zero
		case run.Is == isUnknown && row.Unknown != "":
			words = row.Unknown
		}
		text, _ := fill(words, one.field)
		all = append(all, text)
	}
	return strings.Join(all, row.Between)
}

// String lists the indexes: "tokens 1, 3, heads 0"; "elements" for everywhere.
func (s Spots) String() string {
	if s == "" {
		return "elements"
	}
	return listedSpots.Replace(string(s))
}

// only says which indexes have a mistake; empty for all indexes.
func (s Spots) only() string {
	if s == "" {
		return ""
	}
	var all []string
	for part := range strings.SplitSeq(string(s), ";") {
		noun, at, _ := strings.Cut(part, "=")
		if !strings.ContainsAny(at, ",-") {
			noun = strings.TrimSuffix(noun, "s")
		}
		all = append(all, noun+" "+strings.NewReplacer("-", " to ", ",", ", ").Replace(at))
	}
	return ", only at " + strings.Join(all, " and ")
}

// listedSpots turns indexes into words.
var listedSpots = strings.NewReplacer("=", " ", ",", ", ", ";", ", ")
