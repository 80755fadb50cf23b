package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// normVariants yields norms that wrongly subtract the mean or keep the mean, and gates that do not shift.
func normVariants(s *search) iter.Seq[Mistake] {
	var all []Mistake
	p := s.first.Program
	add := func(kind Kind, steps []int) {
		if len(steps) > 0 {
			all = append(all, Mistake{Kind: kind, Place: s.site(s.first, steps[0])})
		}
	}
	add("norm.layernorm", edit.Means(p))
	add("norm.rmsnorm", edit.TakenOff(p))
	add("sparsity.not-shifted", edit.Gates(p))
	return slices.Values(all)
}

// leastPart is the least number of channels in a part with a norm of its own.
const leastPart = 4

// meansOfParts yields a separate norm for each part of a row, such as the channels of a head.
func meansOfParts(s *search) iter.Seq[Mistake] {
	var all []Mistake
	if means := edit.Means(s.first.Program); len(means) > 0 {
		width := s.first.Program.Result(means[0]).Last()
		for n := width / 2; n >= leastPart; n-- {
			if width%n == 0 {
				all = append(all, Mistake{Kind: "norm.of-parts", Place: s.site(s.first, means[0]), N: n, M: width})
			}
		}
	}
	return slices.Values(all)
}

// otherNorm makes a variant of each norm, or of each gate.
func otherNorm(_ *subject, e *Entry, m Mistake) *program.Edited {
	switch m.Kind {
	case "norm.layernorm":
		return edit.MeanOff(e.Program)
	case "norm.rmsnorm":
		return edit.MeanKept(e.Program)
	case "norm.of-parts":
		return edit.MeansOfParts(e.Program, m.N)
	}
	return edit.Unshifted(e.Program)
}
