package words

import (
	"fmt"

	"github.com/tracediff/tracediff/compare/redflag"
)

// CheckVerdict says how many red flags a trace has and how many kinds were looked for. Kinds are skipped, or without a tensor.
func CheckVerdict(r *redflag.Result) (verdict Field, skipped, without []string) {
	for _, l := range r.Looked {
		switch {
		case l.Skipped:
			skipped = append(skipped, string(l.Kind))
		case l.Tensors == 0:
			without = append(without, string(l.Kind))
		}
	}
	verdict = Field{Kind: Said, Label: "no red flag", Tone: Good}
	if n := len(r.Flags); n > 0 {
		verdict.Label, verdict.Tone = Count(n, "red flag", "red flags"), Bad
	}
	verdict.Text = fmt.Sprintf("%d of %d kinds were looked for", len(r.Looked)-len(without)-len(skipped), len(r.Looked))
	return verdict, skipped, without
}
