package report

import (
	"io"

	"github.com/tracediff/tracediff/compare/weights"
)

// weightsSchema names the format of [WeightsDocument]. The JSON Schema is in docs/schema. The number follows the rule of [Schema].
const weightsSchema = "tracediff/weights/1"

// WeightsDocument is the outcome of tracediff weights.
type WeightsDocument struct {
	Schema string          `json:"schema"` // "tracediff/weights/1"
	Tool   Tool            `json:"tool"`   // that wrote the report
	Exit   int             `json:"exit"`   // 0 where every tensor is right, else 1
	Result *weights.Result `json:"result"`
}

// WeightsExit is the exit status of a comparison of weights: 0 where every tensor is right, else 1.
func WeightsExit(r *weights.Result) int {
	if r.Right() {
		return 0
	}
	return 1
}

// WeightsJSON writes a comparison of weights in the form of one indented object. It returns the error of w.
func WeightsJSON(w io.Writer, version string, r *weights.Result) error {
	d := WeightsDocument{Schema: weightsSchema, Tool: Tool{"tracediff", version}, Exit: WeightsExit(r), Result: r}
	return indented(w, d)
}
