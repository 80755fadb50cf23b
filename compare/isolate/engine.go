package isolate

import "context"

// Engine knows the engine of a trace, beyond transformers' arithmetic. [Isolator.Certify] asks it about entries that this arithmetic does not give.
type Engine interface {
	// Kernel is the fused kernel of a form, nil if no kernel is known. It is asked before transformers' arithmetic is.
	Kernel(ctx context.Context, of FormKey) (*Arithmetic, error)
	// Searched reports whether the arithmetic of a form has been found already.
	Searched(of FormKey) bool
	// Otherwise judges an entry that transformers' arithmetic does not give, which leaves the elements off. Identified is
	// false for one that no arithmetic is known to explain, and that some choice of roundings may: nothing is left of it then.
	Otherwise(ctx context.Context, t *Trial, c *Certificate, strict *Judgement, off []int) (j *Judgement, left []int, identified bool, err error)
	// Follow follows a mistake through the parts of a large entry, of which the first is a BUG with a certificate.
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
