package text

import (
	"fmt"
	"io"

	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/words"
)

// Prompts writes each prompt for people, as the command that captures it. model is the value of --model; empty for the embedded checkpoint.
// It returns the error of w.
func Prompts(w io.Writer, r *report.Prompts, model string, s Style) error {
	p := &printer{style: s}
	p.line("%s, %s: %s of %d that were tried", r.Model, r.DType, words.Count(len(r.Prompts), "prompt", "prompts"), r.Tried)
	for _, one := range r.Prompts {
		p.blank()
		flags := ""
		if model != "" {
			flags = " --model " + model
		}
		p.line("tracediff capture%s --dtype %s --level 3 --tokens '%s'", flags, r.DType, one.Tokens)
		text := fmt.Sprintf("  %s and %s show %d mistakes", words.Count(one.Length, "token", "tokens"), words.Count(one.Steps, "step", "steps"), one.Seen)
		if len(r.Prompts) > 1 {
			text += fmt.Sprintf(", %d of them shown by no other prompt", len(one.Alone))
		}
		p.line("%s", text)
	}
	p.blank()
	p.document(words.SightOf(r.Sight, words.Options{})) // what is not shown is what is asked for
	return p.writeTo(w)
}
