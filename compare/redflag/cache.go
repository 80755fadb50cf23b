package redflag

import (
	"context"
)

// cache looks for zero vectors in keys and values, [.., heads, S, D]. A cache that is allocated for more tokens than were fed may be zero after the
// fed tokens.
func cache(ctx context.Context, v *view, f *found) error {
	for i := range v.subjects {
		s := &v.subjects[i]
		if !s.is(roleCached) || !s.DType.Float() || len(s.Shape) < 3 || s.dim(2) == 0 || s.elements() == 0 || s.dim(1) > maxRow || !f.look(CacheZero) {
			continue
		}
		var due, spare zeros // the slots of the tokens fed so far, and the slots after them
		fed := v.fed.upTo(s.pass)
		err := v.rows(ctx, s, func(i int64, x []float64) (bool, error) {
			if fed > 0 && i%int64(s.dim(2)) >= fed {
				spare.add(i, x)
			} else {
				due.add(i, x)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		found := due
		if spare.zero < spare.rows { // the spare slots are written, so the ids do not count all tokens
			if found.zero == 0 || spare.zero > 0 && spare.first < found.first {
				found.first = spare.first
			}
			found.rows, found.zero = found.rows+spare.rows, found.zero+spare.zero
		}
		if found.zero > 0 {
			f.raise(CacheZero, s, []Number{number("vectors", float64(found.rows)), number("zero", float64(found.zero)), number("position", float64(found.first%int64(s.dim(2))))},
				"%d of %d vectors are all zero, the first at %s: position %d of %d", found.zero, found.rows, coordinates(s.Shape[:len(s.Shape)-1], found.first), found.first%int64(s.dim(2)), s.dim(2))
		}
	}
	return nil
}

// zeros counts vectors that are all zero.
type zeros struct{ rows, zero, first int64 }

func (z *zeros) add(i int64, x []float64) {
	z.rows++
	for _, y := range x {
		if y != 0 {
			return
		}
	}
	if z.zero == 0 {
		z.first = i
	}
	z.zero++
}
