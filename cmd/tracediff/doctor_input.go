package main

import (
	"context"
	"strings"

	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/internal/health"
)

// checkInput finds the ids as a run does, shows them beside their texts, and says whether the model was trained on such.
func (p *patient) checkInput(_ context.Context, s *health.Section) {
	if p.config == nil {
		return
	}
	v := p.vocabulary()
	p.tok = health.Tokenizer(s, p.folder, v)
	template := health.Template(s, p.folder)
	if p.tok == nil && p.Tokens == "" && p.inputFile() == "" {
		const hint = "give the ids themselves: --tokens 2,513,88"
		if p.Prompt != nil {
			s.Fail(hint, "the prompt cannot be turned into ids without a tokenizer")
			return
		}
		s.Warn(hint, "no input: there is no tokenizer, and no ids were given")
		return
	}
	j := &job{settings: p.settings, folder: p.folder, further: p.NewTokens}
	if err := j.readInput(); err != nil {
		s.Fail(doctorHint(err), "%v", err)
		return
	}
	health.Tokens(s, health.Input{
		Passes: j.passes, Tokenizer: p.tok, Vocabulary: v, WantsBOS: wantsBOS(p.config.ModelType),
		Prompt: p.Prompt != nil, Default: j.isWhat, Template: template, All: p.full,
	})
	if err := gemma.CheckPasses(p.config, j.passes, j.further); err != nil {
		s.Fail(doctorHint(err), "%v", err)
		return
	}
	p.passes, p.further = j.passes, j.further
	p.countTokens(s)
}

// wantsBOS reports whether a family was trained with a BOS before every text: all but Qwen.
func wantsBOS(modelType string) bool { return !strings.HasPrefix(modelType, "qwen") }

// countTokens says how much there is to run, and that all of it is in the model's tables.
func (p *patient) countTokens(s *health.Section) {
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
		further = ", then " + plural(p.further, "decode step")
	}
	s.OK("%s in %s%s, all within the vocabulary of %d", plural(tokens, "token"), plural(len(p.passes), "forward call"), further, p.config.VocabSize)
	if outside > 0 {
		s.Warn("such ids are the places of images and sound; in a text there should be none",
			"%s outside the per-layer table of %d rows: row 0 is read there, as in transformers", plural(outside, "id"), p.config.Gemma3n.PerLayerVocab)
	}
}
