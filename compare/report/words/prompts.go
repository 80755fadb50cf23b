package words

import (
	"fmt"

	"github.com/tracediff/tracediff/compare/report"
)

// Prompts are prompts as the commands that capture them. model is the value of --model; empty for the embedded checkpoint.
func Prompts(r *report.Prompts, model string) *Document {
	doc := &Document{}
	doc.Line("%s, %s: %s of %d that were tried", r.Model, r.DType, Count(len(r.Prompts), "prompt", "prompts"), r.Tried)
	for _, one := range r.Prompts {
		doc.Blank()
		doc.Line("tracediff capture%s --dtype %s --level 3 --tokens '%s'", Either(model == "", "", " --model "+model), r.DType, one.Tokens)
		text := fmt.Sprintf("  %s and %s show %d mistakes", Count(one.Length, "token", "tokens"), Count(one.Steps, "step", "steps"), one.Seen)
		if len(r.Prompts) > 1 {
			text += fmt.Sprintf(", %d of them shown by no other prompt", len(one.Alone))
		}
		doc.Line("%s", text)
	}
	doc.Blank()
	sight(doc, r.Sight)
	return doc
}
