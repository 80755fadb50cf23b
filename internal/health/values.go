package health

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/cores"
	"github.com/tracediff/tracediff/internal/floats"
)

// Role is the purpose of a weight, which decides the values that are suspicious.
type Role uint8

// The roles.
const (
	Matrix  Role = iota
	Bias         // may be zero
	Gain         // of a norm that multiplies by w: 1 at the start of training
	OneGain      // of a norm that multiplies by 1+w: 0 at the start of training
)

// Weight is a tensor of the model, its data a view of the file.
type Weight struct {
	Name string
	Role Role
	hooks.Tensor
}

// The sample of a large weight: some blocks, spread evenly, with the first and the last. All of E2B's weights take 40 MB of reading in this
// way.
const (
	wholeBelow = 1 << 16 // elements: norms, scales and every small matrix are read whole
	blocks     = 16
	blockSize  = 2048 // elements
)

// stats are of the elements looked at.
type stats struct {
	seen, zero, nan, inf int
	sum, min, max        float64
	shape                shape
}

// add runs once an element of the whole model, so it compares where math.Min would call.
func (t *stats) add(values []float64) {
	t.seen += len(values)
	var m2, m4 float64
	for _, v := range values {
		if v-v != 0 {
			if v != v {
				t.nan++
			} else {
				t.inf++
			}
			continue
		}
		if v == 0 {
			t.zero++
		}
		t.sum += v
		square := v * v
		m2 += square
		m4 += square * square
		if v < t.min {
			t.min = v
		}
		if v > t.max {
			t.max = v
		}
	}
	t.shape.add(len(values), m2, m4)
}

// mean is of the finite elements.
func (t *stats) mean() float64 { return t.sum / float64(max(t.seen-t.nan-t.inf, 1)) }

// look reads a weight, whole or in part. The data hold the elements of the shape: the checkpoint has seen to it.
func look(ctx context.Context, w Weight, all bool) stats {
	t := stats{min: math.Inf(1), max: math.Inf(-1)}
	buffer := make([]float64, blockSize)
	for start, end := range spans(w.Tensor, all) {
		if ctx.Err() != nil {
			break
		}
		part := buffer[:end-start]
		if err := floats.Decode(part, w.DType, w.Data[start*w.DType.Size():]); err == nil {
			t.add(part)
		}
	}
	return t
}

// spans yields the blocks of a tensor that are looked at, from and to, at most blockSize elements each.
func spans(t hooks.Tensor, all bool) func(yield func(start, end int) bool) {
	n := len(t.Data) / t.DType.Size()
	whole := all || n <= wholeBelow
	steps := blocks
	if whole {
		steps = (n + blockSize - 1) / blockSize
	}
	return func(yield func(start, end int) bool) {
		for i := range steps {
			start := i * blockSize
			if !whole {
				start = int(int64(i) * int64(n-blockSize) / (blocks - 1))
			}
			if !yield(start, min(start+blockSize, n)) {
				return
			}
		}
	}
}

// Values looks for weights that were never loaded, were damaged, or were converted for another arithmetic: all zero, not
// finite, as they are before training, norm weights with 1 added. spread is the deviation with which transformers fills a
// matrix of this model, initializer_range. all reads every element; otherwise large weights are sampled.
func Values(ctx context.Context, s *Section, weights []Weight, spread float64, all bool) {
	found := lookAll(ctx, weights, all)
	if ctx.Err() != nil {
		return
	}
	var seen, total int
	var zero, broken []string
	for i, w := range weights {
		t := found[i]
		seen, total = seen+t.seen, total+len(w.Data)/w.DType.Size()
		if t.nan+t.inf > 0 {
			broken = append(broken, fmt.Sprintf("%s has %d NaN and %d Inf in %d", w.Name, t.nan, t.inf, t.seen))
		}
		if t.seen > 0 && t.zero == t.seen && w.Role != Bias && w.Role != OneGain {
			zero = append(zero, w.Name)
		}
	}
	if len(broken) > 0 {
		s.Fail("the file is damaged, or was written by a run that had already diverged", "%s not finite: %s", amount.Of(len(broken), "weight"), few(broken))
	}
	if len(zero) > 0 {
		s.Warn("a weight that was never loaded or never trained is zero: compare it with the original's", "%s all zero: %s", amount.Of(len(zero), "weight"), few(zero))
	}
	fresh(s, weights, found, spread)
	gains(s, weights, found)
	if seen == total {
		s.OK("values: all %d looked at", seen)
	} else {
		s.OK("values: %d of %d looked at (small weights whole, large ones in %d places; --full reads all)", seen, total, blocks)
	}
}

// lookAll looks at the weights on all cores.
func lookAll(ctx context.Context, weights []Weight, all bool) []stats {
	found := make([]stats, len(weights))
	cores.Each(len(weights), func(i int) { found[i] = look(ctx, weights[i], all) })
	return found
}

// gains looks at the norm weights together: a single one may have any values.
func gains(s *Section, weights []Weight, found []stats) {
	for _, role := range []Role{Gain, OneGain} {
		n, lowest, highest, sum := 0, math.Inf(1), math.Inf(-1), 0.0
		for i, w := range weights {
			if w.Role != role || found[i].nan+found[i].inf > 0 || found[i].seen == 0 {
				continue
			}
			n++
			sum += found[i].mean()
			lowest, highest = min(lowest, found[i].min), max(highest, found[i].max)
		}
		initial := initialGain[role]
		switch mean := sum / float64(n); {
		case n == 0:
		case lowest == initial && highest == initial:
			s.Warn("an untrained model looks like this: was a trained checkpoint loaded before this one was saved?", "%s, all at the initial value %g", amount.Of(n, "norm weight"), initial)
		case role == OneGain && lowest >= 0 && mean > 0.5:
			// Saved norm weights are often below zero, wherever a channel is damped. With 1 added, a value below zero is a sign change of the channel,
			// which training hardly ever finds.
			s.Warn("converters to GGUF add 1 to them, and this family adds 1 again: take the norm weights of the original",
				"nothing in the %s is below zero (least %.2g, mean %.2f): 1 may have been added already", amount.Of(n, "norm weight"), lowest, mean)
		}
	}
}

// DTypes says in which types the weights are kept, and warns where they are mixed.
func DTypes(s *Section, weights []Weight) {
	byType := map[hooks.DType][]string{}
	for _, w := range weights {
		byType[w.DType] = append(byType[w.DType], w.Name)
	}
	var parts []string
	for d := hooks.F64; d.Valid(); d++ {
		if names := byType[d]; len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", len(names), d, few(names)))
		}
	}
	switch len(parts) {
	case 0:
	case 1:
		s.OK("%s, all %s", amount.Of(len(weights), "weight"), weights[0].DType)
	default:
		s.Warn("each weight is rounded to the type that is computed in; published checkpoints have one type", "the weights have several types: %s", few(parts))
	}
}

// Head compares a head in the file with the embedding of a model with tied weights.
func Head(s *Section, head, embedding Weight, all bool) {
	same := head.DType == embedding.DType && len(head.Data) == len(embedding.Data)
	if same {
		size := head.DType.Size()
		for start, end := range spans(head.Tensor, all) {
			same = same && bytes.Equal(head.Data[start*size:end*size], embedding.Data[start*size:end*size])
		}
	}
	if !same {
		s.Warn("transformers 5 uses the head of the file, older versions and most ports the embedding", "tie_word_embeddings is true, and %s differs from %s", head.Name, embedding.Name)
		return
	}
	s.OK("%s is in the file and equals %s, as tie_word_embeddings says", head.Name, embedding.Name)
}
