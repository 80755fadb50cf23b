package job

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// Input is what is fed to a model.
type Input struct {
	Passes  [][]int
	Further int  // tokens to decode after them
	Default bool // no input was named

	tok       *tokenizer.Tokenizer // nil where it cannot be read
	byRunner  *runnerIDs           // the ids of the prompt, where the reference runner's tokenizer made them
	unchecked string               // the parts of the tokenizer not compared with transformers' own
}

// Lengths returns the number of tokens of each pass, including the decode passes.
func (in *Input) Lengths() []int {
	var n []int
	for _, ids := range in.Passes {
		n = append(n, len(ids))
	}
	for range in.Further {
		n = append(n, 1)
	}
	return n
}

// Replay feeds the reference's ids to the local side. Without it, one tie in the choice of a token would make every
// later pass incomparable.
func (in *Input) Replay(passes [][]int) {
	in.Further = max(0, len(in.Passes)+in.Further-len(passes))
	in.Passes = passes
}

// said is the remark of a report about the ids: they were made by transformers, or by code that was not compared with it.
func (in *Input) said() string {
	switch {
	case in.byRunner != nil:
		return in.byRunner.said()
	case in.unchecked != "":
		return "ids: by tracediff, unchecked kind: " + in.unchecked
	}
	return ""
}

// Text is a token's text, empty when there is no tokenizer.
func (in *Input) Text(id int) string {
	if in.tok == nil {
		return in.byRunner.text(id)
	}
	return in.tok.Text(id)
}

// Texts gives the texts of ids; nil when there is no tokenizer.
func (in *Input) Texts() (func(int) string, error) {
	if in.tok == nil && in.byRunner == nil {
		return nil, nil
	}
	return in.Text, nil
}

// ParseTokens reads "2,513,88;17;29": ids separated by commas, passes by semicolons.
func ParseTokens(text string) ([][]int, error) {
	var passes [][]int
	for part := range strings.SplitSeq(text, ";") {
		var ids []int
		for word := range strings.SplitSeq(part, ",") {
			id, err := strconv.ParseUint(strings.TrimSpace(word), 10, 31)
			if err != nil {
				return nil, hint.Add(fmt.Errorf("--tokens: %q is not a token id", word), "want ids such as 2,513,88, with ';' between passes")
			}
			ids = append(ids, int(id))
		}
		passes = append(passes, ids)
	}
	return passes, nil
}
