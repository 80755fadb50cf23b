package doctor

import (
	"context"
	"strings"

	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// checkInput finds the ids as a run does, shows them beside their texts, and says whether the model was trained on such.
func (p *Patient) checkInput(_ context.Context, s *health.Section) {
	if p.config == nil {
		return
	}
	v := p.vocabulary()
	if _, err := tokenizer.Open(p.folder); err != nil && p.undescribed && health.HasTokenizer(p.folder) {
		s.Warn("--prompt works where --python names an interpreter that has transformers; --tokens 2,513,88 needs none", "token ids are made by transformers: %v", err)
		p.byRunner = true
	} else {
		p.tok = health.Tokenizer(s, p.folder, v)
	}
	template := health.Template(s, p.folder)
	if p.tok == nil && p.Tokens == "" && p.InputFile() == "" {
		const hint = "give the ids themselves: --tokens 2,513,88"
		if p.byRunner {
			s.OK("the ids of a prompt are known once it is captured")
			return
		}
		if p.Prompt != nil {
			s.Fail(hint, "the prompt cannot be turned into ids without a tokenizer")
			return
		}
		s.Warn(hint, "no input: there is no tokenizer, and no ids were given")
		return
	}
	input, err := session.ReadInput(p.Settings, p.folder)
	if err != nil {
		s.Fail(Hint(err), "%v", err)
		return
	}
	health.Tokens(s, health.Input{
		Passes: input.Passes, Tokenizer: p.tok, Vocabulary: v, WantsBOS: !p.undescribed && wantsBOS(p.config.ModelType),
		Prompt: p.Prompt != nil, Default: input.Default, Template: template, All: p.Full,
	})
	if err := gemma.CheckPasses(p.config, input.Passes, input.Further); err != nil {
		s.Fail(Hint(err), "%v", err)
		return
	}
	p.passes, p.further = input.Passes, input.Further
	p.countTokens(s)
}

// wantsBOS reports whether a family was trained with a BOS before every text: all but Qwen.
func wantsBOS(modelType string) bool { return !strings.HasPrefix(modelType, "qwen") }

// countTokens says how much there is to run, and that all of it is in the model's tables.
func (p *Patient) countTokens(s *health.Section) {
	tokens, outside := 0, 0
	for _, ids := range p.passes {
		tokens += len(ids)
		for _, id := range ids {
			if g := p.config.Gemma3n; g != nil && id >= g.PerLayerVocab {
				outside++
			}
		}
	}
	further := ""
	if p.further > 0 {
		further = ", then " + amount.Of(p.further, "decode step")
	}
	s.OK("%s in %s%s, all within the vocabulary of %d", amount.Of(tokens, "token"), amount.Of(len(p.passes), "forward call"), further, p.config.VocabSize)
	if outside > 0 {
		s.Warn("such ids are the places of images and sound; in a text there should be none",
			"%s outside the per-layer table of %d rows: row 0 is read there, as in transformers", amount.Of(outside, "id"), p.config.Gemma3n.PerLayerVocab)
	}
}
