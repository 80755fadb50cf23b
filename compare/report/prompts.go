package report

import (
	"io"

	"github.com/tracediff/tracediff/compare/detectable"
)

// promptsSchema names the format of [PromptsDocument]. The JSON Schema is in docs/schema. The number follows the rule of [Schema].
const promptsSchema = "tracediff/prompts/1"

// PromptsDocument is the outcome of tracediff prompts.
type PromptsDocument struct {
	Schema string   `json:"schema"` // "tracediff/prompts/1"
	Tool   Tool     `json:"tool"`   // that wrote it
	Exit   int      `json:"exit"`   // 0: the prompts show every usual mistake, 1: they do not
	Result *Prompts `json:"result"`
}

// Prompts are a small set of prompts. The set shows every usual mistake that any tried prompt shows.
type Prompts struct {
	Model   string            `json:"model"`
	DType   string            `json:"dtype"`
	Tried   int               `json:"tried"` // prompts
	Prompts []Prompt          `json:"prompts"`
	Sight   *detectable.Sight `json:"sight"` // of all of them together
}

// Prompt is one of them.
type Prompt struct {
	Tokens string   `json:"tokens"` // for --tokens: passes stand between semicolons
	Length int      `json:"length"` // tokens of the first pass
	Steps  int      `json:"steps"`  // passes after it
	Seen   int      `json:"seen"`   // how many of the usual mistakes it shows
	Alone  []string `json:"alone"`  // the names of those that no other prompt of the set shows
}

// ExitCode is 0 where the prompts show every usual mistake of the model.
func (p *Prompts) ExitCode() int {
	if len(p.Sight.Seen) < p.Sight.Known {
		return 1
	}
	return 0
}

// PromptsJSON writes prompts as one indented object. The error is that of w.
func PromptsJSON(w io.Writer, version string, r *Prompts) error {
	return indented(w, PromptsDocument{Schema: promptsSchema, Tool: Tool{"tracediff", version}, Exit: r.ExitCode(), Result: r})
}
