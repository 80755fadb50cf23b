package gemma

import "math"

// newGemma3 builds the layers of Gemma 3: queries and keys are normed, and sliding layers turn by tables of their own.
func newGemma3(b *builder, lastLayer int) stack {
	scale := 1 / math.Sqrt(b.config.QueryPreAttnScalar)
	return b.decoder(decoderKind{postNorms: true, attention: attentionKind{headNorms: true, scale: scale}}, lastLayer)
}
