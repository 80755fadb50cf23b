package report

import (
	"io"

	"github.com/tracediff/tracediff/compare/redflag"
)

// checkSchema names the format of [CheckDocument]. The JSON Schema is in docs/schema. The number follows the rule of [Schema].
const checkSchema = "tracediff/check/1"

// CheckDocument is the outcome of tracediff check.
type CheckDocument struct {
	Schema string          `json:"schema"` // "tracediff/check/1"
	Tool   Tool            `json:"tool"`   // that wrote the report
	Exit   int             `json:"exit"`   // 0 without a flag, 1 with one
	Result *redflag.Result `json:"result"`
}

// CheckJSON writes the red flags of a trace as one indented object, with numbers in the form of [JSON]. It returns the error of w.
func CheckJSON(w io.Writer, version string, r *redflag.Result) error {
	d := CheckDocument{Schema: checkSchema, Tool: Tool{"tracediff", version}, Result: r}
	if len(r.Flags) > 0 {
		d.Exit = 1
	}
	return indented(w, d)
}
