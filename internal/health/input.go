package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// Input is a run's input, with what is known of the model's tokenizer and chat template.
type Input struct {
	Passes     [][]int              // the ids of each forward call
	Tokenizer  *tokenizer.Tokenizer // nil: there are no texts to the ids
	Vocabulary Vocabulary
	WantsBOS   bool   // the family was trained with a BOS before every text
	Prompt     bool   // the ids are of a prompt, with the tokens that the tokenizer adds
	Default    bool   // no input was named: the ids are a stand-in
	Template   string // the file that has the model's chat template; empty: none has
	All        bool   // show every id, however many there are
}

// Of a long input the start, where BOS and a template's first turn stand, and the end, from which the model goes on.
const (
	shownFirst = 48
	shownLast  = 16
	idsInLine  = 8
)

// Tokens shows the ids with their texts, and reports problems before any arithmetic: no BOS or two, no chat template for a model that has a
// template, ids without a text. The caller checks with the model's own code that the ids lie within the vocabulary.
func Tokens(s *Section, in Input) {
	for pass, ids := range in.Passes {
		s.ids(in, pass, ids)
	}
	if len(in.Passes) == 0 || len(in.Passes[0]) == 0 {
		return
	}
	all := slices.Concat(in.Passes...)
	s.bos(in, all)
	s.turns(in, all)
	s.textless(in, all)
}

// ids adds the lines of one forward call.
func (s *Section) ids(in Input, pass int, ids []int) {
	where := "ids"
	if len(in.Passes) > 1 {
		where = fmt.Sprintf("ids, pass %d", pass)
	}
	last := len(ids)
	if !in.All && len(ids) > shownFirst+shownLast {
		last = shownFirst
	}
	s.someIDs(in, where, ids, 0, last)
	if last < len(ids) {
		end := len(ids) - shownLast
		s.OK("%s: %d to %d are not shown; --full shows all %d", where, last, end-1, len(ids))
		s.someIDs(in, where, ids, end, len(ids))
	}
}

func (s *Section) someIDs(in Input, where string, ids []int, from, to int) {
	for ; from < to; from += idsInLine {
		var parts []string
		for _, id := range ids[from:min(from+idsInLine, to)] {
			parts = append(parts, in.show(id))
		}
		if len(ids) > idsInLine {
			s.OK("%s, from %d: %s", where, from, strings.Join(parts, "  "))
		} else {
			s.OK("%s: %s", where, strings.Join(parts, "  "))
		}
	}
}

// show is an id with its text: 527 "Hello". An id without a text of its own is in brackets: [2 "<bos>"].
func (in *Input) show(id int) string {
	if in.Tokenizer == nil {
		return fmt.Sprint(id)
	}
	text := fmt.Sprintf("%d %s", id, plain.Quote(in.Tokenizer.Text(id)))
	if in.Tokenizer.Special(id) {
		text = "[" + text + "]"
	}
	return text
}

// bosID is the id that should come first: the tokenizer's, else config.json's, else −1.
func (in *Input) bosID() int {
	if in.Tokenizer != nil {
		if id, ok := in.Tokenizer.BOS(); ok {
			return id
		}
	}
	return in.Vocabulary.BOS
}

// bos looks at the start: most wrong outputs that are nobody's arithmetic begin here.
func (s *Section) bos(in Input, ids []int) {
	bos := in.bosID()
	first := ids[0] == bos && bos >= 0
	again := slices.Index(ids[1:], bos) + 1
	mark := in.show(bos)
	switch {
	case bos < 0 && in.WantsBOS:
		s.Warn("bos_token_id of config.json names it, and the post_processor of tokenizer.json puts it there", "no BOS is known, and this family was trained with one before every text")
	case bos < 0:
		s.OK("no BOS, and none is expected")
	case first && again == 1:
		s.Warn("the tokenizer puts one before a prompt, and --tokens are taken as they are: leave one out",
			"BOS comes twice, %s at 0 and 1: the model was not trained on this", mark)
	case first && !in.WantsBOS:
		s.Warn("transformers' tokenizer of this family does not put one there", "BOS %s comes first, and this family is used without it", mark)
	case again > 0 && bos >= 0:
		s.Warn("a text that is tokenized in parts gets one before each part: only the first belongs there", "BOS %s comes in the middle, at %d", mark, again)
	case first:
		s.OK("BOS %s comes first, and once", mark)
	case !in.WantsBOS:
		s.OK("no BOS, as usual for this family")
	case in.Default:
		s.OK("no BOS: without a prompt the input is one token")
	case in.Prompt:
		s.Warn("the post_processor of tokenizer.json puts it there: take the tokenizer files of the original", "no BOS: the tokenizer puts none, and this family was trained with %s before every text", mark)
	default:
		s.Warn(fmt.Sprintf("begin --tokens with %d, unless the text is a continuation", bos), "no BOS: this family was trained with %s before every text", mark)
	}
}

// turns says whether the input is the conversation that the model was tuned for.
func (s *Section) turns(in Input, ids []int) {
	if in.Default || in.Tokenizer == nil || in.Template == "" {
		return
	}
	switch in.Tokenizer.Turn(ids) {
	case tokenizer.Answer:
		s.OK("the input is a conversation that ends where the model answers")
	case tokenizer.OpenTurn:
		s.Warn("--chat writes the whole template around a prompt", "the input has markers of turns, but does not end where the model answers")
	default:
		next := "--chat puts the prompt into it"
		if !in.Prompt {
			next = "--prompt with --chat makes the ids of a conversation"
		}
		s.Warn(next+"; for a comparison of arithmetic a bare prompt is as good",
			"the model has a chat template (%s), and the input is a bare text: the continuation will not be an answer", in.Template)
	}
}

// textless looks for ids without text: unknown ids, and ids outside the tokenizer.
func (s *Section) textless(in Input, ids []int) {
	if in.Tokenizer == nil {
		return
	}
	unknown, without := 0, 0
	id, named := in.Tokenizer.Unknown()
	for _, i := range ids {
		switch {
		case named && i == id:
			unknown++
		case i >= in.Tokenizer.Size():
			without++
		}
	}
	if unknown > 0 {
		s.Warn("the vocabulary has no piece for some of the text: is it the tokenizer of this model?", "%s unknown, %s: what was written there is lost", amount.Of(unknown, "token"), in.show(id))
	}
	if without > 0 {
		s.Warn("the last rows of a vocabulary are padding, or belong to images", "%s without a text: the tokenizer has %d ids", amount.Of(without, "token"), in.Tokenizer.Size())
	}
}
