package diagnose

import (
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// The usual mistakes that no kind of the catalogue expresses.

// coefficientsClipped clips a weight as in training.
func coefficientsClipped(s *subject, e *Entry) *program.Edited {
	if len(e.Weights) == 0 || s.m.List.Config.Gemma3n == nil {
		return nil
	}
	most := s.m.List.Config.Gemma3n.AltUpCoefClip
	return reweighted(e, func(_ int, w program.Rows) program.Rows {
		return each(func(x float64) float64 { return max(-most, min(most, x)) })(w, Mistake{}, e.Call.DType)
	}, order.NameOf(e.Weights[0].Name).Role())
}

// cachedUnturned reads the keys of the pass before without their rotation.
func cachedUnturned(s *subject, e *Entry) *program.Edited {
	shape := e.Program.Out.Shape
	own := order.NameOf(s.m.List.At(e.Node).Name)
	if !own.Within() || e.Node.Pass != 1 || len(shape) != 4 {
		return nil
	}
	tokens, now := s.m.Passes[0].Tokens, s.m.Passes[1].Tokens
	var v program.Value
	for _, module := range []string{"self_attn.k_norm", "self_attn.k_proj"} {
		n := order.Node{Entry: s.m.List.Index(own.Here(module).String())}
		if n.Entry < 0 || !s.m.Has(n) {
			continue
		}
		var err error
		if v, err = s.m.Read(n); s.failed(err) {
			return nil
		}
		break
	}
	kept := shape[2] - now
	if v.Shape == nil || len(v.Data) != tokens*shape[1]*shape[3] || kept <= 0 || kept > tokens {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	turned := ed.Permute(ed.Reshape(ed.Other(v), shape[0], tokens, shape[1], shape[3]), 0, 2, 1, 3)
	ed.Return(ed.Cat(2, ed.Slice(turned, 2, tokens-kept, tokens), ed.Slice(e.Program.Out, 2, kept, shape[2])))
	return ended(ed)
}
