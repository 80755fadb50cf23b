package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/tracediff/tracediff/compare/redflag"
)

// CheckSchema names the format of [CheckDocument]; docs/schema has it as JSON Schema. Its number is raised as that of
// [Schema] is.
const CheckSchema = "tracediff/check/1"

// CheckDocument is the outcome of tracediff check.
type CheckDocument struct {
	Schema string          `json:"schema"` // "tracediff/check/1"
	Tool   Tool            `json:"tool"`   // that wrote the report
	Exit   int             `json:"exit"`   // 0 without a flag, 1 with one
	Result *redflag.Result `json:"result"`
}

// CheckJSON writes the red flags of a trace as one indented object, numbers as [JSON] does. The error is that of w.
func CheckJSON(w io.Writer, version string, r *redflag.Result) error {
	d := CheckDocument{Schema: CheckSchema, Tool: Tool{"tracediff", version}, Result: r}
	if len(r.Flags) > 0 {
		d.Exit = 1
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// maxAlso is how many further tensors of a flag the text names.
const maxAlso = 4

// CheckText writes the red flags of a trace for people. The last line has how many there are. The error is that of w.
func CheckText(w io.Writer, r *redflag.Result, s Style) error {
	p := &printer{style: s, width: pageWidth}
	p.line("trace:  %s, %s of %s", r.Trace, plural(r.Tensors, "tensor", "tensors"), plural(r.Passes, "pass", "passes"))
	for i := range r.Flags {
		p.flag(&r.Flags[i])
	}
	p.blank()
	for _, n := range r.Notes {
		p.line("note: %s", n)
	}
	var without, skipped []string
	for _, l := range r.Looked {
		switch {
		case l.Skipped:
			skipped = append(skipped, string(l.Kind))
		case l.Tensors == 0:
			without = append(without, string(l.Kind))
		}
	}
	if len(skipped) > 0 {
		p.line("skipped: %s", strings.Join(skipped, ", "))
	}
	if len(without) > 0 {
		p.line("nothing to look at for %s", strings.Join(without, ", "))
	}
	looked := fmt.Sprintf("%d of %d kinds were looked for", len(r.Looked)-len(without)-len(skipped), len(r.Looked))
	if len(r.Flags) == 0 {
		p.say(s.good, "no red flag", "%s", looked)
	} else {
		p.say(s.bad, plural(len(r.Flags), "red flag", "red flags"), "%s", looked)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// flag writes one flag as a block.
func (p *printer) flag(f *redflag.Flag) {
	p.blank()
	p.WriteString(paint(p.style.bad, "RED FLAG") + clean(fmt.Sprintf(" %s: %s, pass %d", f.Kind, f.Entry, f.Pass)) + "\n")
	part := func(label, text string) { p.broken(9, fmt.Sprintf("  %-6s %s", label, text)) }
	part("found", f.What)
	if n := len(f.Also); n > 0 {
		shown := f.Also[:min(n, maxAlso)]
		more := ""
		if n > maxAlso {
			more = fmt.Sprintf(" and %d more", n-maxAlso)
		}
		part("also", strings.Join(shown, ", ")+more)
	}
	part("means", f.Means)
	part("try", f.Try)
}

// plural is a number with its noun, in one form or the other.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
