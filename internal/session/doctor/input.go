package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/portweights"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/tokenizer"
)

// checkInput finds the ids as a run does, shows the ids with their texts, and warns about ids unlike the model's
// training data.
func (p *Patient) checkInput(_ context.Context, s *health.Section) {
	if p.model.config == nil {
		return
	}
	v, byRunner := p.model.vocabulary(), false
	if _, err := tokenizer.Open(p.model.folder); err != nil && p.model.undescribed && health.HasTokenizer(p.model.folder) {
		s.Warn("--prompt works if --python names an interpreter that has transformers; --tokens 2,513,88 needs none", "token ids are made by transformers: %v", err)
		byRunner = true
	} else {
		p.tok = health.Tokenizer(s, p.model.folder, v)
	}
	if p.tok != nil && p.tok.Unchecked() != "" {
		s.Warn("compare them with those of transformers, once: python -m tracediff.ids --model DIR < prompt.txt", "ids: by tracediff, unchecked kind: %s", p.tok.Unchecked())
	}
	p.comparePortTokenizer(s)
	template := health.Template(s, p.model.folder)
	if p.tok == nil && p.Tokens == "" && p.InputFile() == "" {
		const hint = "give the ids themselves: --tokens 2,513,88"
		if byRunner {
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
	input, err := job.ReadInput(p.Settings, &job.Model{Folder: p.model.folder})
	if err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
		return
	}
	health.Tokens(s, health.Input{
		Passes: input.Passes, Tokenizer: p.tok, Vocabulary: v, WantsBOS: !p.model.undescribed && wantsBOS(p.model.config.ModelType),
		Prompt: p.Prompt != nil, Default: input.Default, Template: template, All: p.Full,
	})
	if err := gemma.CheckPasses(p.model.config, input.Passes, input.Further); err != nil {
		s.Fail(job.IDsHint, "%v", err)
		return
	}
	p.input = input
	p.countTokens(s)
}

// wantsBOS reports whether a family was trained with a BOS before every text: all but Qwen.
func wantsBOS(modelType string) bool { return !strings.HasPrefix(modelType, "qwen") }

// countTokens reports the number of tokens to run, and whether all ids are within the model's tables.
func (p *Patient) countTokens(s *health.Section) {
	tokens, outside := 0, 0
	for _, ids := range p.input.Passes {
		tokens += len(ids)
		for _, id := range ids {
			if g := p.model.config.Gemma3n; g != nil && id >= g.PerLayerVocab {
				outside++
			}
		}
	}
	further := ""
	if p.input.Further > 0 {
		further = ", then " + amount.Of(p.input.Further, "decode step")
	}
	s.OK("%s in %s%s, all within the vocabulary of %d", amount.Of(tokens, "token"), amount.Of(len(p.input.Passes), "forward call"), further, p.model.config.VocabSize)
	if outside > 0 {
		s.Warn("such ids are the places of images and sound; in a text there should be none",
			"%s outside the per-layer table of %d rows: row 0 is read there, as in transformers", amount.Of(outside, "id"), p.model.config.Gemma3n.PerLayerVocab)
	}
}

// comparePortTokenizer compares the tokenizer of a port's GGUF file with that of the checkpoint, on texts that are drawn.
func (p *Patient) comparePortTokenizer(s *health.Section) {
	const same = "an engine that reads the file gives the model other ids than transformers does: give both the same ids with --tokens, or convert the checkpoint again with its own tokenizer files"
	if p.Port == "" || p.tok == nil {
		return
	}
	theirs, is, err := portweights.PortTokenizer(p.Port)
	switch {
	case !is || errors.Is(err, tokenizer.ErrNoTokenizer):
		return
	case err != nil:
		s.Skip("give both the same ids with --tokens", "the tokenizer of the port's file was not compared with the checkpoint's: %v", err)
		return
	}
	d, err := p.tok.Compare(theirs)
	if err != nil {
		s.Skip("give both the same ids with --tokens", "the tokenizer of the port's file was not compared with the checkpoint's: %v", err)
		return
	}
	right := true
	warn := func(format string, args ...any) {
		right = false
		s.Warn(same, "the tokenizer of the port's file is not the checkpoint's: "+format, args...)
	}
	if d.Sizes[0] != d.Sizes[1] {
		warn("it has %d tokens, and the checkpoint's has %d", d.Sizes[1], d.Sizes[0])
	}
	if d.Piece >= 0 {
		warn("token %d is %.60q, and %.60q in the checkpoint", d.Piece, theirs.Text(d.Piece), p.tok.Text(d.Piece))
	}
	if d.Differ > 0 {
		warn("%d of %d random texts get other ids, such as %q: %v, and %v in the checkpoint. It splits by %s; the checkpoint by %s",
			d.Differ, d.Texts, d.Text, d.Other, d.Ours, theirs.Splits(), p.tok.Splits())
	}
	ours, has := p.tok.BOS()
	if bos, puts := theirs.BOS(); puts != has || bos != ours {
		warn("it puts %s before a prompt, and the checkpoint's puts %s", bosOf(theirs), bosOf(p.tok))
	}
	if right {
		s.OK("the tokenizer of the port's file: the %d tokens of the checkpoint's, and its ids for %d random texts", d.Sizes[0], d.Texts)
	}
}

// bosOf says what a tokenizer puts before a prompt.
func bosOf(t *tokenizer.Tokenizer) string {
	if id, ok := t.BOS(); ok {
		return fmt.Sprintf("token %d, %.60q,", id, t.Text(id))
	}
	return "nothing"
}
