package compare

// Edit is a step from the reference's token ids to the local side's: ids that both have, that only the reference has or
// that only the local side has.
type Edit struct {
	Op    EditOp   `json:"op"`
	IDs   []int64  `json:"ids"`
	Texts []string `json:"texts,omitempty"`
}

// EditOp is the kind of an [Edit].
type EditOp string

// The steps. A script goes through the reference's ids from start to end.
const (
	Keep   EditOp = "keep"
	Delete EditOp = "delete" // only the reference has them
	Insert EditOp = "insert" // only the local side has them
)

// maxEdits bounds the search for the shortest script: with as many insertions and deletions it costs maxEdits² steps
// and ints. Prompts that differ by more are not two versions of one prompt.
const maxEdits = 512

// edits returns an edit script from a to b: the shortest if it needs at most maxEdits insertions and deletions, and
// otherwise a replacement of everything between the common start and the common end. Among shortest scripts,
// deletions come first.
func edits(a, b []int64) []Edit {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var script []Edit
	add := func(op EditOp, ids ...int64) {
		if len(ids) == 0 {
			return
		}
		if last := len(script) - 1; last >= 0 && script[last].Op == op {
			script[last].IDs = append(script[last].IDs, ids...)
			return
		}
		script = append(script, Edit{Op: op, IDs: append([]int64(nil), ids...)})
	}
	add(Keep, a[:start]...)
	midA, midB := a[start:len(a)-end], b[start:len(b)-end]
	if ops, ok := shortest(midA, midB); ok {
		for _, op := range ops {
			switch op {
			case Keep:
				add(op, midA[0])
				midA, midB = midA[1:], midB[1:]
			case Delete:
				add(op, midA[0])
				midA = midA[1:]
			case Insert:
				add(op, midB[0])
				midB = midB[1:]
			}
		}
	} else {
		add(Delete, midA...)
		add(Insert, midB...)
	}
	add(Keep, a[len(a)-end:]...)
	return script
}

// shortest is the greedy algorithm of Myers (1986): reach[k] is how far into a the best script with d edits gets on
// diagonal k = (place in a) − (place in b). The states of all d are kept, and the script is read off backwards.
func shortest(a, b []int64) ([]EditOp, bool) {
	limit := min(len(a)+len(b), maxEdits)
	reach := make([]int, 2*limit+3)
	mid := limit + 1 // the place of diagonal 0
	var history [][]int
	for d := 0; d <= limit; d++ {
		for k := -d; k <= d; k += 2 {
			x := from(reach[mid-d-1:mid+d+2], d, k)
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[mid+k] = x
			if x >= len(a) && x-k >= len(b) {
				return backtrack(history, d, k, x), true
			}
		}
		history = append(history, append([]int(nil), reach[mid-d-1:mid+d+2]...))
	}
	return nil, false
}

// from is where a script with d edits starts on diagonal k, given how far those with d−1 got: down from k+1, which
// inserts, or right from k−1, which deletes. reach has the diagonals −d−1 to d+1.
func from(reach []int, d, k int) int {
	i := k + d + 1
	if d == 0 {
		return 0
	}
	if k == -d || k != d && reach[i-1] < reach[i+1] {
		return reach[i+1]
	}
	return reach[i-1] + 1
}

// backtrack reads the script that reached x on diagonal k with d edits. history[d] has diagonals −d−1 to d+1.
func backtrack(history [][]int, d, k, x int) []EditOp {
	var ops []EditOp
	for ; d > 0; d-- {
		before := history[d-1] // diagonals −d to d
		i := k + d
		op, start, from := Delete, 0, k-1
		if k == -d || k != d && before[i-1] < before[i+1] {
			op, from = Insert, k+1
			start = before[i+1]
		} else {
			start = before[i-1] + 1
		}
		for ; x > start; x-- {
			ops = append(ops, Keep)
		}
		ops = append(ops, op)
		if op == Delete {
			x--
		}
		k = from
	}
	for ; x > 0; x-- {
		ops = append(ops, Keep)
	}
	for i, j := 0, len(ops)-1; i < j; i, j = i+1, j-1 {
		ops[i], ops[j] = ops[j], ops[i]
	}
	return ops
}

// spell gives the ids of the result their texts, as [Reporting].TokenTexts says.
func (r *Result) spell(texts func() (func(id int) string, error)) error {
	if texts == nil {
		return nil
	}
	text, err := texts()
	if text == nil || err != nil {
		return err
	}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		in.Texts = textsOf(in.Local, text)
		for k := range in.Edits {
			in.Edits[k].Texts = textsOf(in.Edits[k].IDs, text)
		}
	}
	if r.Final == nil {
		return nil
	}
	for _, pass := range r.Final.Passes {
		for i := range pass.Last.Top {
			t := &pass.Last.Top[i]
			s := text(t.ID)
			t.Text = &s
		}
	}
	return nil
}

func textsOf(ids []int64, text func(id int) string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = text(int(id))
	}
	return out
}
