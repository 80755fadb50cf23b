package redflag

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// argmax looks at the tokens that the passes predict. If the trace has logits before and after a soft cap, argmax reads the logits after the cap.
func argmax(ctx context.Context, v *view, f *found) error {
	name := ""
	for i := range v.subjects {
		if s := &v.subjects[i]; s.is(roleLogits) && s.DType.Float() && s.elements() > 0 && s.dim(1) > 1 && s.dim(1) <= maxRow && (name == "" || strings.HasSuffix(s.name, "logits")) {
			name = s.name
		}
	}
	if name == "" || !f.look(ArgmaxSame) {
		return nil
	}
	for _, look := range []func(context.Context, *view, *found, string) (bool, error){sameArgmax, sameLogits, sameNext} {
		if same, err := look(ctx, v, f, name); err != nil || same {
			return err
		}
	}
	return nil
}

// sameArgmax looks for one token that is the most likely in every row of every pass. A healthy model may repeat the token that it is fed, so the
// input has to have several different tokens.
func sameArgmax(ctx context.Context, v *view, f *found, name string) (bool, error) {
	var first *subject
	rows, best, same := int64(0), -1, true
	ids := map[int]bool{}
	for pass := 0; pass < v.passes && same; pass++ {
		s := v.find(pass, name)
		if s == nil {
			break
		}
		if first == nil {
			first = s
		}
		tokens := s.dim(2)
		err := v.rows(ctx, s, func(i int64, x []float64) (bool, error) {
			rows++
			at := largestOf(x)
			same = at >= 0 && (best < 0 || at == best)
			best = at
			if id, ok := v.fed.behind(pass, int(i%int64(max(tokens, 1))), tokens); ok {
				ids[id] = true
			} else if len(v.fed.ids) == 0 && tokens > 1 { // a prompt, which rarely repeats one token all the time
				ids[-1-int(i)] = true
			}
			return same, nil
		})
		if err != nil {
			return false, err
		}
	}
	if !same || rows < argmaxRows || len(ids) < argmaxIDs {
		return false, nil
	}
	f.raise(ArgmaxSame, first, []Number{number("rows", float64(rows)), number("tokens_fed", float64(len(ids))), number("argmax", float64(best))},
		"all %d rows, after %d different tokens, have their maximum at token %d", rows, len(ids), best)
	return true, nil
}

// sameNext looks for passes that all choose the same next token: a few passes that were fed different tokens, or many passes.
func sameNext(ctx context.Context, v *view, f *found, name string) (bool, error) {
	var first *subject
	best, passes := -1, 0
	ids := map[int]bool{}
	for ; passes < v.passes; passes++ {
		s := v.find(passes, name)
		if s == nil || s.dim(1) > maxRow || s.elements() == 0 {
			break
		}
		x, err := v.row(ctx, s, s.elements()-int64(s.dim(1)), s.dim(1))
		if err != nil {
			return false, err
		}
		at := largestOf(x)
		if at < 0 || best >= 0 && at != best {
			return false, nil
		}
		if first == nil {
			first = s
		}
		best = at
		if id, ok := v.fed.behind(passes, s.dim(2)-1, s.dim(2)); ok {
			ids[id] = true
		}
	}
	fewFed := passes >= repeatedPasses && len(ids) != 1 // len(ids) is 0 if the ids are not known
	if !fewFed && (passes < fedPasses || len(ids) < argmaxIDs) {
		return false, nil
	}
	fed := ""
	if len(ids) > 0 {
		fed = fmt.Sprintf(", after %d different tokens", len(ids))
	}
	f.raise(ArgmaxSame, first, []Number{number("passes", float64(passes)), number("tokens_fed", float64(len(ids))), number("argmax", float64(best))},
		"all %d passes choose token %d next%s", passes, best, fed)
	return true, nil
}

// largestOf is the index of the largest number, and the lowest index of equal numbers; −1 if a number is NaN.
func largestOf(x []float64) int {
	at := 0
	for j, y := range x {
		if y != y {
			return -1
		}
		if y > x[at] {
			at = j
		}
	}
	return at
}

// sameLogits looks for passes whose last rows are equal to the bit, although the passes were fed different tokens.
func sameLogits(ctx context.Context, v *view, f *found, name string) (bool, error) {
	var first *subject
	var last, x []float64
	ids := map[int]bool{}
	passes := 0
	for ; passes < v.passes; passes++ {
		s := v.find(passes, name)
		if s == nil || s.dim(1) > maxRow || s.elements() == 0 {
			break
		}
		if len(x) != s.dim(1) {
			x = make([]float64, s.dim(1))
		}
		if err := v.read(ctx, s, s.elements()-int64(s.dim(1)), x); err != nil {
			return false, err
		}
		if first == nil {
			first = s
		} else if !slices.Equal(x, last) {
			return false, nil
		}
		last = append(last[:0], x...)
		if fed := v.fed.of(passes); len(fed) > 0 {
			ids[fed[len(fed)-1]] = true
		}
	}
	if passes < unchangedPasses || v.fed.ids != nil && len(ids) < 2 {
		return false, nil
	}
	f.raise(ArgmaxSame, first, []Number{number("passes", float64(passes)), number("argmax", float64(largestOf(last)))},
		"all %d passes end with the same numbers, to the bit; the maximum is at token %d", passes, largestOf(last))
	return true, nil
}
