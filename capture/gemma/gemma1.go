package gemma

import "math"

// newGemma builds the layers of Gemma 1, all full and without norms after attention and MLP.
func newGemma(b *builder, lastLayer int) stack {
	scale := 1 / math.Sqrt(float64(b.headDim))
	return b.decoder(decoderKind{attention: attentionKind{scale: scale}}, lastLayer)
}
