package op

import "github.com/tracediff/tracediff/order/program"

// StreamMean is R((X_0 + u_1 + … + u_{A−1}) / A), the sum in float32. Inputs: X_0, u_1 … u_{A−1}.
type StreamMean struct{}

// Kind is "stream_mean".
func (StreamMean) Kind() string { return "stream_mean" }

// Steps averages.
func (StreamMean) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	var streams []program.Var
	for _, x := range in {
		streams = append(streams, b.Permute(x, append(axes(len(x.Shape)), -1)...)) // [B,T,H,1]
	}
	return b.Mean("mean", b.Cat(len(in[0].Shape), streams...))
}
