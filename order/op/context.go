package op

import "github.com/tracediff/tracediff/order/program"

// Context is R(probs·v), heads then merged: [B,Hq,T,S]·[B,Hkv,S,D] to [B,T,Hq·D]. Inputs: probs, values.
type Context struct{}

// Kind is "context".
func (Context) Kind() string { return "context" }

// Steps multiplies.
func (Context) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	values := in[1]
	probs := b.Split(in[0], 1, values.Shape()[1]) // [B,Hkv,group,T,S]
	return b.Dot("context", "bkgts,bksd->btkgd", probs, values)
}
