package weights

import (
	"context"
	"math"
)

// minCut is how many codes that are not the nearest show that all of them were cut off. Of codes that are the nearest half lie further from
// zero than their numbers, so that fewer would do.
const minCut = 32

// cutOff looks for codes of which each is the next one toward zero, or the next lower one, where the nearest is meant.
func (a *attempt) cutOff(ctx context.Context) (bool, error) {
	if g := a.local.Coding; g == nil || g.Moves {
		return false, nil
	}
	inward, downward, beside, n := true, true, 0, 0
	for p := range (view{t: a.original}).parts {
		b, err := a.r.read(ctx, a.local, view{t: a.original}, p)
		if err != nil {
			return false, err
		}
		for i, l := range b.local {
			x := a.q.makes(b.original[i])
			x = b.Within(i, x)
			d, most, step := x-l, b.Slack[i]+0x1p-12*b.Step[i], b.Step[i]
			if !(math.Abs(d) <= step+most) {
				return false, nil
			}
			downward = downward && d >= -most
			inward = inward && (math.Abs(d) <= most || math.Signbit(d) == math.Signbit(x))
			if n++; math.Abs(d) > 0.5*step+most {
				beside++
			}
		}
		if !inward && !downward {
			return false, nil
		}
	}
	if beside < minCut || beside*worstBeside <= n {
		return false, nil
	}
	where := either(inward, "toward zero", "down")
	a.row.wrong(Mistake, CutOff, "codes are rounded %s: %d of %d are not the nearest, and each is the next one on that side", where, beside, n)
	a.row.Unequal = beside
	return true, nil
}
