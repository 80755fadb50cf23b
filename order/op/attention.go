package op

// Mask is the additive attention mask [1, 1, T, S]: 0 where query q may see key k, the lowest finite number of the
// dtype elsewhere. It may when k ≤ q and, with a Window, k > q − Window. Input: positions.
type Mask struct {
	Window int `json:"window,omitempty"`
}

// Kind is "mask".
func (Mask) Kind() string { return "mask" }

// RoPE turns pairs (j, j+D/2) of the last axis by the angles of the tables, three roundings an element:
//
//	y[j]     = R(R(x[j]·cos) + R(−x[j+D/2]·sin))
//	y[j+D/2] = R(R(x[j+D/2]·cos) + R(x[j]·sin))
//
// and transposes [B,T,h,D] to [B,h,T,D]. Inputs: x, cos, sin.
type RoPE struct{}

// Kind is "rope".
func (RoPE) Kind() string { return "rope" }

// Cache appends this pass's keys or values to those of the pass before, along the key axis of [B,h,S,D], of which a
// windowed layer has kept the last Window−1. Inputs: this pass's, the pass before's (absent in pass 0).
// With Transpose the first input is [B,T,h,D].
type Cache struct {
	Window    int  `json:"window,omitempty"`
	Transpose bool `json:"transpose,omitempty"`
}

// Kind is "cache".
func (Cache) Kind() string { return "cache" }

// Scores is R(R(q·kᵀ) · Scale); query head h reads key head ⌊h·Hkv/Hq⌋. Inputs: q, keys.
type Scores struct {
	Scale float64 `json:"scale"`
}

// Kind is "scores".
func (Scores) Kind() string { return "scores" }

// Softmax is over the last axis, in float32 and not rounded. Input: x.
type Softmax struct{}

// Kind is "softmax".
func (Softmax) Kind() string { return "softmax" }

// Cast is R(x). Input: x.
type Cast struct{}

// Kind is "cast".
func (Cast) Kind() string { return "cast" }

// Context is R(probs·v), heads then merged: [B,Hq,T,S]·[B,Hkv,S,D] to [B,T,Hq·D]. Inputs: probs, values.
type Context struct{}

// Kind is "context".
func (Context) Kind() string { return "context" }
