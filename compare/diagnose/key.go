package diagnose

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
)

// Key is the mistake as its kind with names and values, in one line: "number.value(place=rms_norm.eps,of=epsilon,x=1e-05)". In a baseline, two
// mistakes with equal keys are the same mistake. A number has six digits, and each of [Numbers] three; many different numbers become a
// count and a range, and long runs end with a digest. The key leaves out values of the model, such as the right number and the fields of the configuration
// with the number. It also leaves out details that may differ between layers or arithmetics: the name of the source in its layer, how the port rounds, the
// text of an edit, and the elements that were picked by chance.
func (m Mistake) Key() string {
	if m.Kind == "" {
		return ""
	}
	var all []string
	add := func(name, value string) {
		if value != "" {
			all = append(all, name+"="+value)
		}
	}
	if m.First != "" {
		add("first", m.First.mistake().Key())
	}
	add("place", m.Place)
	add("of", m.Of.key())
	add("by", m.By.key())
	add("for", m.For.key())
	add("x", m.X.key())
	add("times", m.Times.key())
	for k, n := range []int{m.N, m.M, m.K} {
		if n != 0 {
			add("nmk"[k:k+1], strconv.Itoa(n))
		}
	}
	add("axis", m.Axis)
	add("other", m.Other)
	if m.DType != 0 {
		add("dtype", m.DType.String())
	}
	if m.Coding != (Coding{}) {
		add("coding", fmt.Sprintf("%s:%d", m.Coding.Numbers, m.Coding.Scales))
	}
	add("runs", m.Runs.key())
	if row := catalogue()[m.Kind]; row == nil || !row.Curve {
		add("numbers", m.Numbers.key())
	}
	if m.Tokens.Some {
		add("tokens", "some"+m.Tokens.From.key())
	}
	add("only", string(m.Only))
	if m.Others.Less {
		add("others", "less")
	}
	add("or", m.Others.Values)
	if len(all) == 0 {
		return string(m.Kind)
	}
	return string(m.Kind) + "(" + strings.Join(all, ",") + ")"
}

// longestRuns is the most bytes of runs that a key has in full.
const longestRuns = 1 << 10

// key writes the runs for a key. Long runs are cut: the first runs, the count, and a digest of all runs.
func (r Runs) key() string {
	if len(r) <= longestRuns {
		return string(r)
	}
	first := string(r[:strings.LastIndexByte(string(r[:longestRuns]), ';')+1])
	return fmt.Sprintf("%s...%d:%x", first, strings.Count(string(r), ";")+1, sha256.Sum256([]byte(r)))
}

// key is the relation as its kind with names and values, like [Mistake.Key]: "rows.zeros(place=zeros,n=3,m=12)". It leaves out X, which depends on the
// prompt.
func (r Relation) key() string {
	key := Mistake{Kind: r.Kind, Place: r.Place, Of: r.Of, By: r.By, N: r.N, M: r.M, K: r.K}.Key()
	if r.At == "" || key == "" {
		return key
	}
	inner, ok := strings.CutSuffix(key, ")")
	if !ok {
		return fmt.Sprintf("%s(at=%s)", key, r.At)
	}
	return fmt.Sprintf("%s,at=%s)", inner, r.At)
}

// Key is the key of the mistake or relation of a name; empty for no name.
func (n Name) Key() string {
	if n.Relation.Kind != "" {
		return n.Relation.key()
	}
	return n.Mistake.Key()
}

// key is the number with six digits; empty for none.
func (n Number) key() string {
	if !n.Has {
		return ""
	}
	return short(n.Value)
}

// key is the term in a key; empty for none.
func (t Term) key() string {
	if t == (Term{}) {
		return ""
	}
	text := string(t.Kind)
	if t.Name != "" {
		text += ":" + t.Name
	}
	if t.X != 0 {
		text += ":" + short(t.X)
	}
	if t.Item.Has {
		text += "[" + t.Item.key() + "]"
	}
	if t.Before {
		text += "@before"
	}
	if t.Sum {
		text += "+sum"
	}
	return text
}
