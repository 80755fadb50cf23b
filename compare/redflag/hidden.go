package redflag

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// hidden compares the state after each layer with the state before the layer.
func hidden(ctx context.Context, v *view, f *found) error {
	for i := range v.subjects {
		s := &v.subjects[i]
		from := stateBefore(v, s)
		if from == nil || from.DType != s.DType || !slices.Equal(from.Shape, s.Shape) || s.elements() == 0 || s.dim(2) > maxRow || s.dim(1) > maxRow || !f.look(HiddenStatic) {
			continue
		}
		if err := evolves(ctx, v, f, from, s); err != nil {
			return err
		}
	}
	return nil
}

// stateBefore is the state from which a layer starts: the layer's input, or the output of the layer before.
func stateBefore(v *view, s *subject) *subject {
	if s.layer < 0 || !s.DType.Float() {
		return nil
	}
	if base, ok := strings.CutSuffix(s.name, ".out"); ok {
		if from := v.find(s.pass, base+".in"); from != nil {
			return from
		}
	}
	old, last := fmt.Sprintf(".%d", s.layer), fmt.Sprintf(".%d", s.layer-1)
	at := strings.LastIndex(s.name, old)
	if at < 0 {
		return nil
	}
	return v.find(s.pass, s.name[:at]+last+s.name[at+len(old):])
}

// evolves measures how much a layer changes the state of each token, over all streams, relative to the length of the state.
func evolves(ctx context.Context, v *view, f *found, from, s *subject) error {
	tokens := s.dim(2)
	diff, length := make([]float64, tokens), make([]float64, tokens)
	width := int64(s.dim(1))
	at := int64(0)
	err := v.pairs(ctx, from, s, func(x, y []float64) {
		for j := range x {
			t := int((at + int64(j)) / width % int64(tokens))
			diff[t] += (x[j] - y[j]) * (x[j] - y[j])
			length[t] += x[j] * x[j]
		}
		at += int64(len(x))
	})
	if err != nil {
		return err
	}
	most := 0.
	for t := range diff {
		if change := math.Sqrt(diff[t] / length[t]); length[t] > 0 && !(change <= most) {
			most = change
		}
	}
	if slices.Max(length) > 0 && most <= v.limits.states.static {
		f.raise(HiddenStatic, s, []Number{number("tokens", float64(tokens)), number("change", most), number("limit", v.limits.states.static)},
			"the state equals %s: no token of %d changes by more than %.3g of its length", from.name, tokens, most)
	}
	return nil
}

// tokens looks for states that are the same for every token.
func tokens(ctx context.Context, v *view, f *found) error {
	for i := range v.subjects {
		s := &v.subjects[i]
		if !hasTokens(s) || s.dim(1) > maxRow || s.dim(1) < 2 || s.elements() == 0 || !differ(v, s) || !f.look(TokensIdentical) {
			continue
		}
		if err := sameRows(ctx, v, f, s); err != nil {
			return err
		}
	}
	return nil
}

// hasTokens reports whether a tensor is [.., T, channels] by its name.
func hasTokens(s *subject) bool {
	state := s.layer >= 0 || s.is(roleEmbedding|roleLogits) || s.name == "norm" || strings.HasSuffix(s.name, ".norm")
	// In a table by layer, [1,T,L,c], the second last axis is the layer.
	return state && s.DType.Float() && len(s.Shape) >= 2 && s.dim(2) >= 2 && !strings.Contains(s.name, "per_layer")
}

// judged is the first token that is compared: token 1, since token 0 often marks the start of the text, or token 0 of two tokens.
func judged(tokens int) int { return min(1, tokens-2) }

// differ reports whether the tokens are different, or not known.
func differ(v *view, s *subject) bool {
	tokens := s.dim(2)
	first, known := v.fed.id(s.pass, judged(tokens), tokens)
	for t := judged(tokens); known && t < tokens; t++ {
		if id, _ := v.fed.id(s.pass, t, tokens); id != first {
			return true
		}
	}
	return !known
}

// sameRows compares every token with the last token, stream by stream, until one token differs.
func sameRows(ctx context.Context, v *view, f *found, s *subject) error {
	tokens, width := int64(s.dim(2)), s.dim(1)
	streams := s.elements() / (tokens * int64(width))
	most, positive := 0., false
	want, x := make([]float64, width), make([]float64, width)
	for a := range streams {
		if err := v.read(ctx, s, ((a+1)*tokens-1)*int64(width), want); err != nil {
			return err
		}
		for t := int64(judged(int(tokens))); t < tokens-1; t++ {
			if err := v.read(ctx, s, (a*tokens+t)*int64(width), x); err != nil {
				return err
			}
			diff, length := 0., 0.
			for j := range x {
				diff += (x[j] - want[j]) * (x[j] - want[j])
				length += want[j] * want[j]
			}
			positive = positive || length > 0
			if far := math.Sqrt(diff / length); !(far <= v.limits.states.identical) && (diff > 0 || length > 0) {
				return nil
			} else if length > 0 {
				most = max(most, far)
			}
		}
	}
	if positive {
		f.raise(TokensIdentical, s, []Number{number("tokens", float64(tokens)), number("difference", most), number("limit", v.limits.states.identical)},
			"tokens %d to %d have the same state, within %.3g of its length", judged(int(tokens)), tokens-1, most)
	}
	return nil
}
