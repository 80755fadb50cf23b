package report

import (
	"io"

	"github.com/tracediff/tracediff/compare/inspect"
)

// InspectionSchema names the format of [Inspection], which docs/schema has as JSON Schema; its number is raised as that of
// [Schema] is.
const InspectionSchema = "tracediff/inspect/1"

// Inspection is what a look into one or two files has shown.
type Inspection struct {
	Schema string          `json:"schema"` // "tracediff/inspect/1"
	Tool   Tool            `json:"tool"`   // that wrote it
	Result *inspect.Result `json:"result"`
}

// InspectionJSON writes a result as one indented object, with numbers as [JSON] writes them. The error is that of w.
func InspectionJSON(w io.Writer, version string, r *inspect.Result) error {
	return indented(w, Inspection{InspectionSchema, Tool{"tracediff", version}, r})
}
