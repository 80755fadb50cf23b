package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/portweights"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// checkWeights checks the weights for damaged files, missing tensors and values damaged on load.
func (p *Patient) checkWeights(ctx context.Context, s *health.Section) {
	if p.model.folder == nil {
		return
	}
	names, sound := health.WeightFiles(s, p.model.folder)
	if sound && p.model.list != nil {
		p.readWeights(ctx, s, names)
	}
	if sound && p.model.recorded != nil {
		p.model.fitProgram(s)
	}
	if p.Port != "" {
		p.comparePort(ctx, s)
	}
}

// fitProgram holds the weights to what the recorded program reads.
func (m *model) fitProgram(s *health.Section) {
	ck, err := m.open()
	if err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
		return
	}
	defer ck.Close() // read only: closing has nothing to say
	if weightsFit(s, ck.Require(wantsOf(m.recorded))) {
		s.OK("all weights that the program reads are there, with its shapes")
	}
}

// wantsOf are the weights of a list.
func wantsOf(list *order.List) (wants []checkpoint.Want) {
	for _, w := range list.Weights() {
		wants = append(wants, checkpoint.Want{Name: w.Name, Fallback: w.Fallback, Shape: w.Shape})
	}
	return wants
}

// maxPortLines is how many things that are wrong with a port's weights are said: tracediff weights says all.
const maxPortLines = 5

// comparePort compares the port's weights with those of the model.
func (p *Patient) comparePort(ctx context.Context, s *health.Section) {
	r, err := portweights.Compare(ctx, settings.AskedWeights{Local: p.Port, Model: p.Model, Map: p.Map})
	if err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
		return
	}
	for i := range r.Findings {
		if i == maxPortLines {
			s.Fail("tracediff weights LOCAL --model DIR lists them", "%d more findings in the weights of the port", len(r.Findings)-i)
			break
		}
		f := &r.Findings[i]
		is := "" // of a class that no sentence says
		if f.Class == weights.Unidentified {
			is = " is UNIDENTIFIED"
		}
		s.Fail(strings.Join(f.Steps(), "; "), "%s of the port%s: %s", f.Name(), is, f.What)
	}
	if r.Right() {
		s.OK("the port's weights, %s: %d equal, %d cast, %d quantised, of %d", p.Port, r.Counts.Equal, r.Counts.Cast, r.Counts.Quantised, len(r.Tensors))
	}
}

// readWeights opens the weights, and checks both the tensors the model reads and the tensors it ignores.
func (p *Patient) readWeights(ctx context.Context, s *health.Section, names []string) {
	ck, err := p.model.open()
	if err != nil {
		s.Fail(Hint(err), "%s", advice.Words(err))
		return
	}
	defer ck.Close() // read only: closing has nothing to say
	wants := wantsOf(p.model.list)
	if weightsFit(s, ck.Require(wants)) {
		s.OK("all weights that the model needs are there, with the shapes of config.json")
	}
	p.model.extra(s, ck.Prefix(), names)
	weights := p.model.weights(ck, wants)
	health.DTypes(s, weights)
	p.model.head(s, ck, p.Full)
	health.Values(ctx, s, weights, p.model.spread, p.Full)
	if m := health.Memory(); m.Available > 0 && ck.Size() > m.Available {
		s.Warn("the built-in model maps them and reads what it needs; --reference hf needs a machine with more memory",
			"the weights take %s, and %s of memory are available: transformers holds all of them", amount.Bytes(ck.Size()), amount.Bytes(m.Available))
	}
}

// maxProblems keeps the list readable when a whole model is of another shape.
const maxProblems = 20

// weightsFit adds a line for each faulty weight, and returns true if no weight is faulty.
func weightsFit(s *health.Section, err error) bool {
	var e *checkpoint.WeightsError
	if err == nil {
		return true
	}
	if !errors.As(err, &e) {
		s.Fail(Hint(err), "%s", advice.Words(err))
		return false
	}
	for i, problem := range e.Problems {
		switch last := i == len(e.Problems)-1; {
		case last:
			s.Fail(e.Hint(), "weight %s", problem)
		case i == maxProblems-1:
			s.Fail(e.Hint(), "weight %s, and %d more weights do not fit", problem, len(e.Problems)-maxProblems)
			return false
		default:
			s.Fail("", "weight %s", problem)
		}
	}
	return false
}

// weights returns the readable weights of the model, each with its role.
func (m *model) weights(ck *checkpoint.Checkpoint, wants []checkpoint.Want) []health.Weight {
	roles := map[string]health.Role{}
	for _, e := range m.list.Entries {
		if norm, ok := e.Op.(op.RMSNorm); ok && len(e.Weights) == 1 {
			roles[e.Weights[0].Name] = health.Gain
			if norm.Gain == op.OnePlus {
				roles[e.Weights[0].Name] = health.OneGain
			}
		}
	}
	var weights []health.Weight
	for _, w := range wants {
		t, ok := ck.Tensor(w.Name)
		if !ok || !t.DType.Float() {
			continue
		}
		role := roles[w.Name]
		if strings.HasSuffix(w.Name, ".bias") {
			role = health.Bias
		}
		weights = append(weights, health.Weight{Name: w.Name, Role: role, Tensor: t})
	}
	return weights
}

// head checks the weights of a head tied to the embedding. A missing head is reported with the other weights.
func (m *model) head(s *health.Section, ck *checkpoint.Checkpoint, full bool) {
	head, has := ck.Tensor(spelling.Head)
	embedding, ok := ck.Tensor(spelling.Embedding)
	switch {
	case !ok || !has && !m.config.Tied:
	case !has:
		s.OK("no %s in the file: the head is %s, as tie_word_embeddings says", spelling.Head, spelling.Embedding)
	case m.config.Tied:
		health.Head(s, health.Weight{Name: spelling.Head, Tensor: head}, health.Weight{Name: spelling.Embedding, Tensor: embedding}, full)
	default:
		s.OK("%s is in the file: tie_word_embeddings is false", spelling.Head)
	}
}

// extra reports the tensors in the files without a use in the model: tensors of other towers, known leftovers, and
// unexpected tensors.
func (m *model) extra(s *health.Section, prefix string, names []string) {
	wanted := map[string]bool{}
	for _, name := range spelling.Heads("") {
		wanted[name] = true
	}
	for _, w := range m.list.Weights() {
		wanted[prefix+w.Name] = true
	}
	var others, leftover int
	var unexpected []string
	for _, name := range names {
		rest, inside := strings.CutPrefix(name, prefix)
		switch {
		case wanted[name]:
		case !inside || spelling.TowerOf(name) != "":
			others++
		case m.leftOver(rest):
			leftover++
		default:
			unexpected = append(unexpected, name)
		}
	}
	if others > 0 {
		s.OK("ignored, outside of the text model: %s", amount.Of(others, "tensor"))
	}
	if leftover > 0 {
		s.OK("ignored, as no operation reads them (keys and values of sharing layers, rotary frequencies, scales turned off): %s", amount.Of(leftover, "tensor"))
	}
	if n := len(unexpected); n > 0 {
		s.Warn("config.json may be from a smaller model, or the family has a part that tracediff does not know",
			"%s below %q that the model does not read, such as %.120q", amount.Of(n, "tensor"), prefix, unexpected[0])
	}
}

// leftOver reports names that files have and the model rightly passes over.
func (m *model) leftOver(name string) bool {
	// Frequencies are computed from the configuration today; a scale is saved where altup_correct_scale turns it off.
	if strings.HasSuffix(name, "rotary_emb.inv_freq") || strings.HasSuffix(name, ".altup.correct_output_scale") {
		return true
	}
	of := order.NameOf(name)
	part, ok := strings.CutPrefix(of.Module(), "self_attn.")
	return ok && of.Layer() >= m.config.FirstShared() && of.Layer() < m.config.NumLayers && hasPrefix(part, []string{"k_proj.", "v_proj.", "k_norm.", "v_norm."})
}

// hasPrefix reports whether name starts with one of the prefixes.
func hasPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
