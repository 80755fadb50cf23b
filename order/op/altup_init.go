package op

import "github.com/tracediff/tracediff/order/program"

// AltUpInit stacks x and its projections, each rescaled to the magnitude of x: [A,B,T,H].
// Inputs: x, target magnitude, then projection and own magnitude for each further stream.
type AltUpInit struct{}

// Kind is "altup_init".
func (AltUpInit) Kind() string { return "altup_init" }

// Steps rescales as [Rescale] does.
func (AltUpInit) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x, target := in[0], in[1]
	streams := []program.Var{b.Permute(x, -1, 0, 1, 2)}
	for k := 2; k+1 < len(in); k += 2 {
		streams = append(streams, b.Permute(b.Rescaled(in[k], target, in[k+1]), -1, 0, 1, 2))
	}
	return b.Cat(0, streams...)
}
