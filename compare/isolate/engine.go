package isolate

import "context"

// Engine knows the engine of a trace, beyond transformers' arithmetic. [Isolator.Certify] asks it about entries not
// given by transformers' arithmetic.
type Engine interface {
	// Kernel is the fused kernel of a form, nil if no kernel is known. It is asked before transformers' arithmetic is.
	Kernel(ctx context.Context, of FormKey) (*Arithmetic, error)
	// Searched reports whether the arithmetic of a form has been found already.
	Searched(of FormKey) bool
	// Otherwise judges an entry not given by transformers' arithmetic; off are the elements outside. identified is
	// false if no known arithmetic explains the entry, but some choice of roundings may; then left is empty.
	Otherwise(ctx context.Context, t *Trial, c *Certificate, strict *Judgement, off []int) (j *Judgement, left []int, identified bool, err error)
	// Follow starts following a mistake through the parts of a large entry. first is a part with a BUG, and c its
	// certificate.
	Follow(ctx context.Context, first *Trial, c *Certificate) (Follower, error)
}

// Follower follows a mistake through the parts of a large entry.
type Follower interface {
	Look(ctx context.Context, part *Trial) error // a part, before it is certified
	End(t *Trial)                                // after all parts
}

// NoFollower follows nothing.
type NoFollower struct{}

func (NoFollower) Look(context.Context, *Trial) error { return nil }

func (NoFollower) End(*Trial) {}
