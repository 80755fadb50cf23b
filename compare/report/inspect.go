package report

import (
	"io"

	"github.com/tracediff/tracediff/compare/inspect"
)

// inspectionSchema names the format of [Inspection]. The JSON Schema is in docs/schema. The number follows the rule of [Schema].
const inspectionSchema = "tracediff/inspect/1"

// Inspection is what a look into one or two files has shown.
type Inspection struct {
	Schema string          `json:"schema"` // "tracediff/inspect/1"
	Tool   Tool            `json:"tool"`   // that wrote it
	Result *inspect.Result `json:"result"`
}

// InspectionJSON writes a result as one indented object, with numbers in the form of [JSON]. It returns the error of w.
func InspectionJSON(w io.Writer, version string, r *inspect.Result) error {
	return indented(w, Inspection{inspectionSchema, Tool{"tracediff", version}, r})
}
