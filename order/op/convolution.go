package op

import "github.com/tracediff/tracediff/order/program"

// Convolution is R(Σ_k w[c,k]·x[t−Kernel+1+k, From+c] + bias[c]), channel by channel, with zeros before the first token; with SiLU it is
// R(silu) of the sum: the short causal convolution of Mamba. Inputs: x [B,T,channels] of each pass, the earliest first and this pass's last.
// Weights: w [channels,1,Kernel] and, with Bias, bias.
type Convolution struct {
	Kernel int  `json:"kernel"`
	From   int  `json:"from,omitempty"` // the first channel of x
	Bias   bool `json:"bias,omitempty"`
	SiLU   bool `json:"silu,omitempty"`
}

// Kind is "convolution".
func (Convolution) Kind() string { return "convolution" }

// Steps multiplies what each token sees, and adds the bias to the finished sum.
func (o Convolution) Steps(b *program.Builder, in, w []program.Var) program.Var {
	channels, tokens := w[0].Shape[0], b.Shape[1]
	if w[0].Last() != o.Kernel || b.Shape[2] != channels {
		return b.Fail("a kernel of %v for %v", w[0].Shape, b.Shape)
	}
	x := joined(b, in)
	y := causal(b, b.Slice(x, 2, o.From, o.From+channels), tokens, b.Whole(w[0]))
	if o.Bias {
		y = b.Add("bias", y, w[1])
	}
	if o.SiLU {
		y = b.Swish(b.R(y))
	}
	return y
}

// joined concatenates the tokens of several passes.
func joined(b *program.Builder, passes []program.Var) program.Var {
	if len(passes) == 1 {
		return passes[0]
	}
	return b.Cat(1, passes...)
}

// causal is the convolution of the last tokens of x [B,S,channels] with w [channels,kernel]: [B,tokens,channels].
func causal(b *program.Builder, x program.Var, tokens int, w program.Var) program.Var {
	batch, seen, channels, kernel := x.Shape[0], x.Shape[1], x.Shape[2], w.Last()
	if need := tokens + kernel - 1; seen < need {
		x = b.Cat(1, b.Expand(b.Literal(0), []int{batch, need - seen, channels}), x)
	} else {
		x = b.Plain(b.Slice(x, 1, seen-need, seen))
	}
	windows := b.View(x, []int{batch, tokens, channels, kernel}, []int{x.Shape[1] * channels, channels, 1, channels}, 0)
	return b.Dot("product", "btck,ck->btc", windows, w)
}
