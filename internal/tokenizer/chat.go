package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A chat is the part of a chat template that a conversation of one turn uses: what it writes before and
// after what the user has said, up to where the model is to answer.
type chat struct {
	bos          bool // a BOS comes first
	before       string
	trim         bool // white space at both ends of the prompt goes
	after        string
	markers      []string // the tokens by which the family is known
	templateFree bool     // all models of the family have the same template
}

// The families with a known template. Their turns are fixed by the markers; what else stands there, a
// system turn that nobody asked for, differs from model to model, and the checkpoint's template says it.
var (
	gemmaChat = chat{
		bos:          true,
		before:       "<start_of_turn>user\n",
		trim:         true,
		after:        "<end_of_turn>\n<start_of_turn>model\n",
		markers:      []string{"<start_of_turn>", "<end_of_turn>"},
		templateFree: true,
	}
	llama3Chat = chat{
		bos:     true,
		before:  "<|start_header_id|>user<|end_header_id|>\n\n",
		trim:    true,
		after:   "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
		markers: []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
	}
	chatML = chat{
		before:  "<|im_start|>user\n",
		after:   "<|im_end|>\n<|im_start|>assistant\n",
		markers: []string{"<|im_start|>", "<|im_end|>"},
	}
)

// Chat returns the ids of a conversation in which a user has said prompt and the model is to answer:
//
//	Gemma:   <bos><start_of_turn>user\n{prompt}<end_of_turn>\n<start_of_turn>model\n
//	Llama 3: <|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{prompt}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n
//	Qwen:    <|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n
//
// These are the templates that the published checkpoints carry, written in code: a template is a
// program, and this package runs none. Gemma's and Llama's trim white space from both ends of prompt;
// Llama 3.1 and most Qwens have a system turn before, which is taken from the checkpoint's template.
// Markers inside of prompt count as markers, as they do in transformers.
//
// The error says what is missing: markers that are tokens, a BOS, or a template with a known output.
// Llama 3.2's output is not known: it has today's date.
func (t *Tokenizer) Chat(prompt string) ([]int, error) {
	c, err := t.chat()
	if err != nil {
		return nil, fmt.Errorf("applying the chat template: %w", err)
	}
	if c.bos && t.named < 0 {
		return nil, errors.New("applying the chat template: the tokenizer names no BOS token")
	}
	if err := valid(prompt); err != nil {
		return nil, err
	}
	if c.trim {
		prompt = strings.TrimFunc(prompt, trimmed)
	}
	ids, err := t.encoder.encode(c.before + prompt + c.after)
	if err != nil {
		return nil, err
	}
	if c.bos {
		ids = append([]int{t.named}, ids...)
	}
	return ids, nil
}

// A Turn says how far ids are a conversation.
type Turn uint8

// The turns. NoTurns also stands for an unknown template.
const (
	NoTurns  Turn = iota // no marker of a turn: a bare text
	OpenTurn             // markers, and at the end not the words after which the model answers
	Answer               // a conversation that ends where the model is to answer
)

// Turn says what a prompt's ids are to the chat template. Of a conversation only the end is looked at: it
// may have a system turn and earlier answers.
func (t *Tokenizer) Turn(ids []int) Turn {
	c, err := t.chat()
	if err != nil {
		return NoTurns
	}
	var markers []int
	for _, marker := range c.markers {
		ids, err := t.encoder.encode(marker)
		if err != nil {
			return NoTurns
		}
		markers = append(markers, ids...)
	}
	if !slices.ContainsFunc(ids, func(id int) bool { return slices.Contains(markers, id) }) {
		return NoTurns
	}
	end, err := t.encoder.encode(c.after) // it begins with a marker, so nothing merges with what stands before
	if err == nil && len(ids) >= len(end) && slices.Equal(ids[len(ids)-len(end):], end) {
		return Answer
	}
	return OpenTurn
}

// chat returns the family's chat with the checkpoint's system turn.
func (t *Tokenizer) chat() (chat, error) {
	for _, family := range []struct {
		chat
		system func(template string) (string, error)
	}{{gemmaChat, nil}, {llama3Chat, llama3System}, {chatML, chatMLSystem}} {
		c := family.chat
		if slices.ContainsFunc(c.markers, func(marker string) bool { return !t.encoder.matches(marker) }) {
			continue
		}
		if c.templateFree {
			return c, nil
		}
		if t.template == "" {
			return chat{}, fmt.Errorf("%s has none, and there is no %s; %s", configFile, templateFile, passIDs)
		}
		// Older templates spell a line break as such, newer ones as an escape.
		system, err := family.system(strings.ReplaceAll(t.template, `\n`, "\n"))
		c.before = system + c.before
		return c, err
	}
	return chat{}, fmt.Errorf("none of %s, %s and %s is a token of this vocabulary; is this an instruction-tuned model?",
		gemmaChat.markers[0], llama3Chat.markers[0], chatML.markers[0])
}

// errTemplate is about a template that may well be sound.
var errTemplate = fmt.Errorf("the checkpoint's template is not a known one; %s", passIDs)

// llama3System returns the system turn of a Llama 3 template: none, or from 3.1 on one with two dates.
func llama3System(template string) (string, error) {
	const (
		turn      = "<|start_header_id|>system<|end_header_id|>\n\n"
		knowledge = "Cutting Knowledge Date: December 2023\n"
		today     = "26 Jul 2024"
	)
	has := func(part string) bool { return strings.Contains(template, part) }
	switch {
	case has("strftime_now"):
		return "", fmt.Errorf("the checkpoint's template writes today's date, and no two days give the same ids; %s", passIDs)
	case !has("message['content'] | trim + '<|eot_id|>'") || !closes(template, "<|start_header_id|>assistant<|end_header_id|>\n\n"):
		return "", errTemplate
	case has(`"`+knowledge+`"`) && has(`"`+turn+`"`) && has(`set date_string = "`+today+`"`):
		return turn + knowledge + "Today Date: " + today + "\n\n<|eot_id|>", nil
	case has("system"), has("Date"):
		// The template of 3.0 treats a system turn as any other, without a name.
		return "", errTemplate
	}
	return "", nil
}

// chatMLSystem returns the system turn that a ChatML template writes where the conversation has none. It
// is the one piece of text between the markers of a system turn.
func chatMLSystem(template string) (string, error) {
	const start, end = "<|im_start|>system\n", "<|im_end|>\n"
	// Thinking-only models open the thoughts, too, and other models trim the user's text.
	if !closes(template, "<|im_start|>assistant\n") || !strings.Contains(template, "'<|im_end|>") || strings.Contains(template, "trim") {
		return "", errTemplate
	}
	var found string
	for rest := template; ; {
		_, after, ok := strings.Cut(rest, start)
		if !ok {
			return found, nil
		}
		rest = after
		if quoted(after) {
			continue // the system turn of the conversation
		}
		text, _, ok := strings.Cut(after, end)
		turn := start + text + end
		if !ok || strings.ContainsAny(text, `'"{}<`) || found != "" && found != turn {
			return "", errTemplate
		}
		found = turn
	}
}

// closes reports whether template has words, and every quoted text with words ends with words: the template then writes nothing after words.
func closes(template, words string) bool {
	parts := strings.Split(template, words)
	return len(parts) > 1 && !slices.ContainsFunc(parts[1:], func(after string) bool { return !quoted(after) })
}

// quoted reports whether a quoted text ends where template begins.
func quoted(template string) bool {
	return template != "" && strings.ContainsAny(template[:1], `'"`)
}

// trimmed reports whether the template's trim, which is Python's str.strip, takes r for white space:
// what Unicode does, and the four information separators of ASCII.
func trimmed(r rune) bool {
	return unicode.IsSpace(r) || '\x1c' <= r && r <= '\x1f'
}
