package gemma

import "math"

// newGemma2 builds the layers of Gemma 2: one rotary embedding for all of them, and scores with a cap.
func newGemma2(b *builder, lastLayer int) stack {
	scale := 1 / math.Sqrt(b.config.QueryPreAttnScalar)
	return b.decoder(decoderKind{postNorms: true, attention: attentionKind{scale: scale}}, lastLayer)
}
