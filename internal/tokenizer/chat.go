package tokenizer

import (
	"fmt"
	"strings"
	"unicode"
)

// The markers of Gemma's turns.
const (
	startOfTurn = "<start_of_turn>"
	endOfTurn   = "<end_of_turn>"
)

// Chat returns the ids of a conversation in which a user has said prompt and the model is to answer:
//
//	<bos><start_of_turn>user\n{prompt}<end_of_turn>\n<start_of_turn>model\n
//
// It is the template that Gemma's published checkpoints carry, written in code because no other is
// wanted; like them it trims white space from both ends of prompt. Markers inside of prompt count as
// markers, as they do in transformers. The error says what is missing when the vocabulary has no BOS
// or does not read a written marker as one token.
func (t *Tokenizer) Chat(prompt string) ([]int, error) {
	bos, ok := t.BOS()
	if !ok {
		return nil, fmt.Errorf("applying the chat template: the tokenizer names no BOS token")
	}
	for _, marker := range []string{startOfTurn, endOfTurn} {
		if !t.encoder.matches(marker) {
			return nil, fmt.Errorf("applying the chat template: %s is no token of this vocabulary; is this an instruction-tuned Gemma?", marker)
		}
	}
	if err := valid(prompt); err != nil {
		return nil, err
	}
	prompt = strings.TrimFunc(prompt, trimmed)
	text := startOfTurn + "user\n" + prompt + endOfTurn + "\n" + startOfTurn + "model\n"
	return append([]int{bos}, t.encoder.encode(text)...), nil
}

// trimmed reports whether the template's trim, which is Python's str.strip, takes r for white space:
// what Unicode does, and the four information separators of ASCII.
func trimmed(r rune) bool {
	return unicode.IsSpace(r) || '\x1c' <= r && r <= '\x1f'
}
