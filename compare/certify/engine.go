package certify

import "context"

// engine knows the engine of a trace, beyond transformers' arithmetic. [Isolator.Certify] asks it about entries that this arithmetic does not give.
type engine interface {
	// kernelOf is the fused kernel of a form, nil if no kernel is known. It is asked before transformers' arithmetic is.
	kernelOf(ctx context.Context, of formKey) (*arithmetic, error)
	// searched reports whether the arithmetic of a form has been found already.
	searched(of formKey) bool
	// otherwise judges an entry that transformers' arithmetic does not give, which leaves the elements off. Identified is
	// false for one that no arithmetic is known to explain, and that some choice of roundings may: nothing is left of it then.
	otherwise(ctx context.Context, t *trial, c *Certificate, strict *judged, off []int) (j *judged, left []int, identified bool, err error)
	// follow follows a mistake through the parts of a large entry, of which the first is a BUG with a certificate.
	follow(ctx context.Context, first *trial, c *Certificate) (partFollower, error)
}

// partFollower follows a mistake through the parts of a large entry.
type partFollower interface {
	look(ctx context.Context, part *trial) error // a part, before it is certified
	end(t *trial)                                // after all parts
}

// noFollower follows nothing.
type noFollower struct{}

func (noFollower) look(context.Context, *trial) error { return nil }
func (noFollower) end(*trial)                         {}

// engineOf is the engine of the arithmetics and of the names of a trace.
type engineOf struct {
	*forms
	names *names
}

func (e engineOf) follow(ctx context.Context, first *trial, c *Certificate) (partFollower, error) {
	m, err := e.names.newInEachPart(ctx, first, c)
	if m == nil {
		return noFollower{}, err
	}
	return m, err
}
