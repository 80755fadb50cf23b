package words

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/internal/amount"
)

// maxAlso is how many further tensors of a flag a brief document names.
const maxAlso = 4

// NoFlag is the verdict on a trace, or a tensor, without a red flag.
const NoFlag = "no red flag"

// Check is what the red flags of a trace are, and what was looked for. The last line has how many there are.
func Check(r *redflag.Result) *Document {
	doc := &Document{}
	doc.Line("trace:  %s, %s", r.Trace, TensorsOf(r))
	for i := range r.Flags {
		doc.blank()
		doc.add(FlagTitle(&r.Flags[i]))
		doc.fields(FlagFields(&r.Flags[i])...)
	}
	doc.blank()
	doc.fields(Remarks(r.Notes)...)
	verdict, kinds := LookedFor(r)
	doc.fields(append(kinds, verdict)...)
	return doc
}

// TensorsOf says how many tensors a trace has, of how many passes.
func TensorsOf(r *redflag.Result) string {
	return count(r.Tensors, "tensor", "tensors") + " of " + count(r.Passes, "pass", "passes")
}

// FlagTitle is a flag in a line.
func FlagTitle(f *redflag.Flag) Field {
	return Field{Kind: Titled, Label: "RED FLAG", Tone: Bad, Text: Clean(fmt.Sprintf("%s: %s, pass %d", f.Kind, f.Entry, f.Pass))}
}

// FlagMessage is a flag in three lines.
func FlagMessage(f *redflag.Flag) string {
	return fmt.Sprintf("%s\nmeans: %s\ntry: %s", Clean(f.What), Clean(f.Means), Clean(f.Try))
}

// FlagFields are what was found, what it means and what to try.
func FlagFields(f *redflag.Flag) []Field {
	doc := &Document{}
	doc.field("found", "%s", f.What)
	if len(f.Also) > 0 {
		doc.only(Brief, func() { doc.field("also", "%s", amount.Some(f.Also, maxAlso)) })
		doc.only(Whole, func() { doc.field("also", "%s", some(f.Also)) })
	}
	doc.field("means", "%s", f.Means)
	doc.field("try", "%s", f.Try)
	return doc.last().Fields
}

// Remarks are notes on what was looked at.
func Remarks(notes []string) (all []Field) {
	for _, n := range notes {
		all = append(all, lead("note:", n))
	}
	return all
}

// LookedFor is the verdict: how many red flags a trace has and how many kinds were looked for. kinds says which kinds were skipped, and which
// had no tensor; the whole of it has what a trace without a flag is worth.
func LookedFor(r *redflag.Result) (verdict Field, kinds []Field) {
	var skipped, without []string
	for _, l := range r.Looked {
		switch {
		case l.Skipped:
			skipped = append(skipped, string(l.Kind))
		case l.Tensors == 0:
			without = append(without, string(l.Kind))
		}
	}
	kinds = []Field{{Length: Whole, Text: "A trace without a flag may still be wrong: compare it."}}
	if skipped != nil {
		kinds = append(kinds, lead("skipped:", strings.Join(skipped, ", ")))
	}
	if without != nil {
		kinds = append(kinds, lead("nothing to look at for", strings.Join(without, ", ")))
	}
	verdict = Field{Kind: Said, Label: NoFlag, Tone: Good}
	if len(r.Flags) > 0 {
		verdict.Label, verdict.Tone = FlagCount(r), Bad
	}
	verdict.Text = fmt.Sprintf("%d of %d kinds were looked for", len(r.Looked)-len(without)-len(skipped), len(r.Looked))
	return verdict, kinds
}

// FlagCount counts red flags.
func FlagCount(r *redflag.Result) string { return count(len(r.Flags), "red flag", "red flags") }
