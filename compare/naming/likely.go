package naming

import (
	"context"
	"fmt"

	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// mostOfRole is the number of products examined for a role. The first product unlike the others of the trace
// decides.
const mostOfRole = 4

// likely returns a sentence if most products of the trace are wrong in the same way, as quantised weights are, and
// the products of the role are too. Otherwise it returns "".
func (k *Names) likely(ctx context.Context, role string) (string, error) {
	if k.i.Options().Own {
		return "", nil
	}
	q, err := k.quantised.Get(ctx, struct{}{}, func(ctx context.Context) (*arithmetic.Quantised, error) {
		return arithmetic.LooksQuantised(ctx, k.i, arithmetic.ProductsOf(k.i))
	})
	if err != nil || q.Text == "" {
		return "", err
	}
	looked := 0
	for _, n := range q.Products {
		if order.NameOf(k.i.List().At(n).Name).Role() != role || looked == mostOfRole {
			continue
		}
		error, err := arithmetic.Coded(ctx, k.i, n)
		if error <= 0 || err != nil || q.Above(role, error) {
			return "", err
		}
		looked++
	}
	if looked == 0 {
		return "", nil
	}
	return q.Text, nil
}

// Beyond returns a sentence for an entry that is further off than quantised weights explain, if its role looks like quantised weights; else an
// empty string.
func Beyond(c *isolate.Certificate, f *diagnose.Finding) string {
	if f == nil || f.Likely == "" || !(float64(c.RelL2) > arithmetic.DefaultThresholds().Codes.Product.Most) {
		return ""
	}
	return fmt.Sprintf("unexplained: off by %.2g%%, more than a quantised weight explains; --weights FILE verifies it", 100*float64(c.RelL2))
}
