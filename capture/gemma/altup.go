package gemma

import (
	"math"

	"github.com/tracediff/tracediff/internal/kernel"
)

// AltUp predicts all streams before a layer and corrects them after it.
type AltUp struct {
	CorrectOutputScale []float32 // nil: not scaled
	CorrectionCoefs    Linear
	PredictionCoefs    Linear
	ModalityRouter     Linear
	RouterNorm         *RMSNorm

	streams, active int
	points          altUpPoints
}

type altUpPoints struct {
	before, after                                 routerPoints
	predict, innovation, correct, scaledCorrected point
}

// routerPoints are those of one of the router's two calls.
type routerPoints struct{ norm, input, routed, modalities point }

func (b *builder) altUp() AltUp {
	router := func(of string) routerPoints {
		return routerPoints{b.point(of + ".router_norm"), b.point(of + ".router_input"), b.point(of + ".modality_router"), b.point(of + ".modalities")}
	}
	c := b.config.Gemma3n
	a := AltUp{
		CorrectionCoefs: b.linear("altup.correction_coefs"), PredictionCoefs: b.linear("altup.prediction_coefs"),
		ModalityRouter: b.linearAt("altup.modality_router", point{}), RouterNorm: b.normAt("altup.router_norm", point{}),
		streams: c.AltUpStreams, active: c.AltUpActive,
		points: altUpPoints{
			before: router("altup.predict"), after: router("altup.correct"),
			predict: b.point("altup.predict"), innovation: b.point("altup.correct.innovation"),
			correct: b.point("altup.correct"), scaledCorrected: b.point("altup.scale_corrected_output"),
		},
	}
	if c.AltUpCorrectScale {
		a.CorrectOutputScale = b.vector("altup.correct_output_scale")
	}
	return a
}

// router returns tanh of the routed, normed and scaled z: [T, A].
func (a *AltUp) router(p *pass, z []float32, at routerPoints) []float32 {
	n := a.RouterNorm.at(p, z, at.norm)
	u := p.see(at.input, p.scale(n, p.R(1/float64(p.hidden))))
	routed := a.ModalityRouter
	routed.out = at.routed
	return p.see(at.modalities, p.tanh(routed.forward(p, u)))
}

// predict returns Pred_o = R(R(Σ_k X_k·c[A·o+k]) + X_o): [A, T, H].
func (a *AltUp) predict(p *pass, x []float32) []float32 {
	m := a.router(p, p.stream(x, a.active), a.points.before)
	c := a.PredictionCoefs.forward(p, m)
	pred := p.take(len(x))
	for o := range a.streams {
		for t := range p.ids {
			coef := c[(t*a.streams+o)*a.streams:][:a.streams]
			row := p.row(pred, o, t)
			for h := range row {
				var sum float64
				for k, v := range coef {
					sum += float64(p.row(x, k, t)[h]) * float64(v)
				}
				row[h] = p.R32(float32(sum))
			}
		}
		p.Add(p.stream(pred, o), p.stream(pred, o), p.stream(x, o))
	}
	return p.see(a.points.predict, pred)
}

// correct returns C_o = R(R((act2 − active)·R(c[o]+1)) + Pred_o): [A, T, H].
func (a *AltUp) correct(p *pass, act2, active, pred []float32) []float32 {
	m := a.router(p, act2, a.points.after)
	coefs := a.CorrectionCoefs.forward(p, m)
	inn := p.see(a.points.innovation, p.sub(act2, active))
	c := p.take(len(pred))
	for o := range a.streams {
		for t := range p.ids {
			row, n := p.row(c, o, t), inn[t*p.hidden:(t+1)*p.hidden]
			p.Scale(row, n, p.R32(coefs[t*a.streams+o]+1))
			p.Add(row, row, p.row(pred, o, t))
		}
	}
	return p.see(a.points.correct, c)
}

func (a *AltUp) scaleCorrectedOutput(p *pass, z []float32) []float32 {
	z = p.copyOf(z)
	if a.CorrectOutputScale != nil {
		p.MulRows(z, z, a.CorrectOutputScale)
	}
	return p.see(a.points.scaledCorrected, z)
}

// Laurel is a low-rank residual block.
type Laurel struct {
	LinearLeft, LinearRight Linear
	PostLaurelNorm          *RMSNorm
	out                     point
}

func (b *builder) laurel() Laurel {
	return Laurel{b.linear("laurel.linear_left"), b.linear("laurel.linear_right"), b.norm("laurel.post_laurel_norm"), b.point("laurel")}
}

func (l *Laurel) forward(p *pass, x []float32) []float32 {
	y := l.LinearRight.forward(p, l.LinearLeft.forward(p, x))
	return p.see(l.out, p.add(x, l.PostLaurelNorm.forward(p, y)))
}

// sparsity is the Gaussian top-k of a gate.
type sparsity struct {
	multiplier              float32 // Φ⁻¹ of the share that is cut off
	mean, std, cutoff, gate point
}

// sparsity builds that of layer i, nil where it has none.
func (b *builder) sparsity(i int) *sparsity {
	share := b.config.Gemma3n.Sparsity[i]
	if share == 0 {
		return nil
	}
	return &sparsity{
		multiplier: kernel.NormalQuantile(share), mean: b.point("mlp.sparsity.mean"), std: b.point("mlp.sparsity.std"),
		cutoff: b.point("mlp.sparsity.cutoff"), gate: b.point("mlp.gate_sparse"),
	}
}

// forward is max(0, R(x − cut)) with cut = R(mean + R(std · R(multiplier))) of each token.
func (s *sparsity) forward(p *pass, x []float32) []float32 {
	width := len(x) / len(p.ids)
	mean, std := p.take(len(p.ids)), p.take(len(p.ids))
	p.Mean(mean, x, width)
	mean = p.see(s.mean, mean)
	p.Std(std, x, width)
	std = p.see(s.std, std)
	cut := p.see(s.cutoff, p.add(mean, p.scale(std, p.R32(s.multiplier))))
	y := p.take(len(x))
	for i, v := range x {
		y[i] = max(0, p.R32(v-cut[i/width]))
	}
	return p.see(s.gate, y)
}

// stream is stream k of x [A, T, H]: [T, H].
func (p *pass) stream(x []float32, k int) []float32 {
	n := len(p.ids) * p.hidden
	return x[k*n : (k+1)*n]
}

// row is token t of stream k of x [A, T, H]: [H].
func (p *pass) row(x []float32, k, t int) []float32 {
	return x[(k*len(p.ids)+t)*p.hidden:][:p.hidden]
}

// magnitude is R(√R(mean R(x²))) of each token of x [T, H]; with a floor, R(√max(R(mean R(x²)), R(floor))).
func (p *pass) magnitude(x []float32, floor float64) []float32 {
	z := p.take(len(p.ids))
	p.MeanSquare(z, x, p.hidden)
	for i, v := range z {
		z[i] = p.R32(float32(math.Sqrt(float64(max(v, p.R(floor))))))
	}
	return z
}

// rescale is R(R(y · target) / own) of each token.
func (p *pass) rescale(y, target, own []float32) []float32 {
	z := p.take(len(y))
	for t := range target {
		row := z[t*p.hidden : (t+1)*p.hidden]
		p.Scale(row, y[t*p.hidden:(t+1)*p.hidden], target[t])
		p.Div(row, row, own[t])
	}
	return z
}

// mean is R(Σ streams / A).
func (p *pass) mean(streams [][]float32) []float32 {
	z := p.take(len(streams[0]))
	for i := range z {
		var sum float32
		for _, x := range streams {
			sum += x[i]
		}
		z[i] = p.R32(sum / float32(len(streams)))
	}
	return z
}
