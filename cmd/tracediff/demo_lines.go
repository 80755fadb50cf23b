package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/docs"
	"github.com/tracediff/tracediff/internal/plain"
)

// meaning is the meaning of some lines of a report.
type meaning struct {
	lines       *regexp.Regexp
	label, text string
}

// meanings are in the order of the lines of a report.
var meanings = []meaning{
	{regexp.MustCompile(`^reference:`), "reference", "the reference (Hugging Face transformers), a stored trace"},
	{regexp.MustCompile(`^local:`), "local", "your port, the side that is tested: here, the built-in model with the mistake"},
	{regexp.MustCompile(`^tokens:`), "tokens", "the token ids that both sides read"},
	{regexp.MustCompile(`^ +part +entries|^(MATCH|MISMATCH) +(input|output|layers?) `), "part", "parts of the model in execution order, with the number of tensors that were compared; the walk stops at the first wrong part"},
	{regexp.MustCompile(`^ +entry |^(MATCH|MISMATCH) +\S+\.\S+ .*(EXACT|ROUNDING|UNIDENTIFIED|BUG)$`), "entry", "the tensors before the first wrong one, and that one"},
	{regexp.MustCompile(`^\(error:`), "error, limit", "how far a tensor is from the reference, and how far rounding can take it here; a comparison with tolerances accepts an error below its limit"},
	{regexp.MustCompile(`(EXACT|ROUNDING|UNIDENTIFIED|BUG)$`), "on its own inputs", "each operation is computed again from your port's own inputs: EXACT is equal bit for bit, ROUNDING is what rounding can do, BUG is what no correct operation gives"},
	{regexp.MustCompile(`^first divergence:`), "first divergence", "the first tensor that is wrong; everything before it is right"},
	{regexp.MustCompile(`^  bug `), "bug", "the mistake, with the line of config.json that says otherwise"},
	{regexp.MustCompile(`^  proof `), "proof", "how many elements the operation with this mistake gives bit for bit, and how many of them the correct operation cannot give"},
	{regexp.MustCompile(`^  see `), "see", "the section with cause and fix; the command for it is below"},
	{regexp.MustCompile(`^  next `), "next", "what to do now"},
	{regexp.MustCompile(`^  what `), "what", "how many elements are wrong, how much, and where"},
	{regexp.MustCompile(`^  error `), "error", "of this tensor, with its limit"},
	{regexp.MustCompile(`^  largest at `), "largest at", "the element with the largest difference"},
	{regexp.MustCompile(`^  computed from `), "computed from", "the inputs of the operation; where they match, the mistake is in the operation itself"},
	{regexp.MustCompile(`^  downstream `), "downstream", "what the mistake does to the tensors that are computed from this one"},
	{regexp.MustCompile(`^operations:`), "operations", "how many operations were computed again, and with which results"},
	{regexp.MustCompile(`^next token:`), "next token", "the token that each side chooses next; the same token proves little"},
	{regexp.MustCompile(`^not compared:`), "not compared", "what this run did not look at"},
	{regexp.MustCompile(`^also:`), "also", "what the last line has no room for: here, which model this was"},
	{regexp.MustCompile(`^(MATCH|MISMATCH|INCOMPLETE): `), "last line", "the verdict; the exit status of compare is 0 for MATCH and ACCEPTED, and 1 for all others"},
}

// labelColumns is the column at which the text of a label begins.
const labelColumns = 20

// explainReport prints the meaning of each line of the report, and the commands to type next.
func explainReport(w io.Writer, d *report.Document, page string) error {
	var b bytes.Buffer
	if err := texts(&b, words.New(d), text.NewStyle(false)); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nWhat the lines mean")
	for _, m := range meanings {
		if !anyLine(b.String(), m.lines) {
			continue
		}
		fmt.Fprintln(w, plain.Wrap(fmt.Sprintf("  %-*s%s", labelColumns-2, m.label, m.text), plain.Columns, labelColumns))
	}
	if page != "" {
		fmt.Fprintf(w, "\nThe mistake, with its fix in PyTorch, C and MLX\n  tracediff explain %s\n", strings.TrimPrefix(page, docs.MistakesPage+"#"))
	}
	_, err := io.WriteString(w, nextForAPort)
	return err
}

func anyLine(text string, pattern *regexp.Regexp) bool {
	for line := range strings.Lines(text) {
		if pattern.MatchString(strings.TrimSuffix(line, "\n")) {
			return true
		}
	}
	return false
}

// nextForAPort lists the commands for a person with a port. A test checks that the flags of the commands exist.
const nextForAPort = `
Your own port, with DIR for its Hugging Face checkpoint
  tracediff doctor --model DIR --prompt "Hello world"
      the token ids, the weights, and what this machine lacks
  tracediff capture --model DIR --prompt "Hello world" --reference hf --side reference
      transformers writes .tracediff/reference.safetensors, once
  tracediff compare dump.pt .tracediff/reference.safetensors --model DIR
      dump.pt: named tensors of your port, saved by torch.save; or .npz and others
  tracediff compare --model DIR --prompt "Hello world" --local 'exec:./port --tokens {tokens} --out {out}'
      or the command that runs your port: compare runs it again each time
`
