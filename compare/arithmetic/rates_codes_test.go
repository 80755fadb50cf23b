package arithmetic_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// codedFaults change a matrix of weights to codes, or read its codes wrong, and are not named quantised-weight in fixtures/faults.
var codedFaults = []string{
	"borrow-across-lanes", "head-quantised-by-itself", "largest-weights-of-a-block-cut-off", "nibbles-read-in-pairs", "nibbles-without-a-sign",
	"scale-of-the-next-row", "signed-nibbles-read-with-an-offset", "smoothed-weights-without-the-norm", "weights-fifth-bit-of-another-element",
	"weights-float8-of-another-exponent", "weights-fused-in-one-scale", "weights-groups-by-position", "weights-halves-of-a-block-in-turn",
	"weights-lanes-of-a-tile-zeroed", "weights-of-offset-binary-read-as-signed", "weights-outliers-left-out", "weights-scale-by-another-maximum",
	"weights-scales-by-their-exponent", "weights-scales-of-blocks-transposed", "weights-scales-of-rows-on-columns", "weights-scales-without-their-offset",
	"weights-zero-point-without-its-scale", "weights-zero-points-at-twice-the-stride", "zero-points-of-the-other-format",
}

// coded reports whether a run has weights that are codes.
func (r *plantedRun) coded() bool {
	return slices.ContainsFunc(r.Faults, func(f plantedFault) bool {
		return f.Mistake == "quantised-weight" || slices.Contains(codedFaults, f.Name)
	})
}

// codeProduct is a product that was looked at.
type codeProduct struct {
	name string
	*arithmetic.CodeLook
}

// but reports whether a wrong product meets every condition, without asking condition k.
func (p codeProduct) but(k int) bool {
	for of, holds := range p.Holds {
		if of != k && !holds {
			return false
		}
	}
	return p.Wrong
}

// Conditions on a trace, after the conditions on a product.
const (
	noCondition = -1
	weights     = "Weights"
	share       = "Share"
)

// likeCodes reports whether a trace looks quantised, as LooksQuantised does, by its products that count. Condition without is not asked.
func likeCodes(products []codeProduct, counts func(codeProduct) bool, without string) bool {
	like, names := 0, map[string]bool{}
	for _, p := range products {
		if counts(p) {
			like++
			names[p.name] = true
		}
	}
	of := arithmetic.DefaultThresholds().Codes.Trace
	return like > 0 && (without == weights || len(names) >= of.Weights) && (without == share || float64(like) >= of.Share*float64(len(products)))
}

// likeCodesBut reports whether a trace would look quantised if a condition were not asked.
func likeCodesBut(products []codeProduct, without string) bool {
	k := slices.Index(arithmetic.CodeConditions, without)
	return likeCodes(products, func(p codeProduct) bool { return p.but(k) }, without)
}

// codesCounts are traces and products of one kind of faults.
type codesCounts struct {
	runs                   []*plantedRun
	products, wrong, coded int
	meet, adds             []int                    // by condition: wrong products that meet it; that meet all others, and not it
	wrongWeights           []*plantedRun            // with as many wrong weights as Weights asks for
	wrongShare             []*plantedRun            // with as large a share of wrong products as Share asks for
	without                map[string][]*plantedRun // by condition: traces that would look quantised without it
	yes                    []*plantedRun
}

// lookedAt asks every condition of some products.
func lookedAt(t *testing.T, i *isolate.Isolator, nodes []order.Node) (all []codeProduct, err error) {
	t.Helper()
	for _, n := range nodes {
		l, err := arithmetic.LookAtCodes(t.Context(), i, n)
		if err != nil {
			return nil, err
		}
		if l != nil {
			all = append(all, codeProduct{i.List().At(n).Name, l})
		}
	}
	return all, nil
}

// add counts a trace: every product, and the products that LooksQuantised looks at.
func (c *codesCounts) add(r *plantedRun, all, products []codeProduct) {
	c.runs = append(c.runs, r)
	for _, p := range all {
		c.products++
		if !p.Wrong {
			continue
		}
		c.wrong++
		if p.but(noCondition) {
			c.coded++
		}
		for k, holds := range p.Holds {
			if holds {
				c.meet[k]++
			} else if p.but(k) {
				c.adds[k]++
			}
		}
	}
	wrong := func(p codeProduct) bool { return p.Wrong }
	if likeCodes(products, wrong, share) {
		c.wrongWeights = append(c.wrongWeights, r)
	}
	if likeCodes(products, wrong, weights) {
		c.wrongShare = append(c.wrongShare, r)
	}
	for _, name := range codesConditions() {
		if likeCodesBut(products, name) {
			c.without[name] = append(c.without[name], r)
		}
	}
}

// codesConditions are all conditions, of a product and of a trace.
func codesConditions() []string {
	return append(slices.Clone(arithmetic.CodeConditions), weights, share)
}

// ratesOfCodes measures how often a mistake in a port with the original's weights looks like quantised weights, and what each condition adds.
// Null hypothesis of CodeThresholds: the weights are the original's. It is true in every trace of the bug bench, except traces of faults that
// change weights to codes. Nearly all mistakes of the bench are in few products: ratesOfCodesEverywhere has mistakes in all products.
func (p *plantedRuns) ratesOfCodes(t *testing.T) {
	var mu sync.Mutex
	kinds := map[bool]*codesCounts{}
	for _, coded := range []bool{false, true} {
		n := len(arithmetic.CodeConditions)
		kinds[coded] = &codesCounts{meet: make([]int, n), adds: make([]int, n), without: map[string][]*plantedRun{}}
	}
	p.each(t, p.runs, func(r *plantedRun, isolator func(isolate.Options) (*compare.Isolator, error)) error {
		i, err := isolator(isolate.Options{})
		if err != nil {
			return err
		}
		nodes := arithmetic.ProductsOf(i.Isolator)
		q, err := arithmetic.LooksQuantised(t.Context(), i.Isolator, nodes)
		if err != nil {
			return err
		}
		every, err := lookedAt(t, i.Isolator, nodes)
		if err != nil {
			return err
		}
		some, err := lookedAt(t, i.Isolator, arithmetic.Spread(nodes, arithmetic.MostLooked))
		if err != nil {
			return err
		}
		if is := likeCodesBut(some, ""); is != (q.Text != "") {
			return fmt.Errorf("looks quantised: %t by its conditions, %q", is, q.Text)
		}
		mu.Lock()
		defer mu.Unlock()
		c := kinds[r.coded()]
		c.add(r, every, some)
		if q.Text != "" {
			c.yes = append(c.yes, r)
		}
		return nil
	})
	c, codes := kinds[false], kinds[true]
	for _, name := range codesConditions() {
		t.Logf("without %s: %s", name, listed(c.without[name]))
	}
	t.Logf("faults that change weights to codes: %s; quantised: %s", listed(codes.runs), listed(codes.yes))
	p.page(t, "codes", len(c.runs)+len(codes.runs) == ratesMeasured, c.table(codes))
	for _, r := range c.yes {
		t.Errorf("%s looks quantised", r.Name)
	}
}

// table is what the page says; codes are the traces of faults that change weights to codes.
func (c *codesCounts) table(codes *codesCounts) string {
	var out strings.Builder
	out.WriteString("\n| traces | mistakes | look quantised | products | wrong | look coded | mistakes in 3 weights or more | in 75 % of the products |\n|---|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&out, "| %d | %d | %d | %d | %d | %d | %d | %d |\n", len(c.runs), differentFaults(c.runs), len(c.yes), c.products, c.wrong, c.coded, differentFaults(c.wrongWeights), differentFaults(c.wrongShare))
	out.WriteString("\n| condition | wrong products that meet it | that meet all other conditions, and not it | traces that look quantised without it |\n|---|---|---|---|\n")
	for k, name := range arithmetic.CodeConditions {
		fmt.Fprintf(&out, "| %s | %d | %d | %d |\n", name, c.meet[k], c.adds[k], len(c.without[name]))
	}
	for _, name := range []string{weights, share} {
		fmt.Fprintf(&out, "| %s | | | %d |\n", name, len(c.without[name]))
	}
	fmt.Fprintf(&out, "\nOf %d traces of %d faults that change weights to codes, %d look quantised.\n", len(codes.runs), differentFaults(codes.runs), len(codes.yes))
	return out.String()
}

// listed are the mistakes of some runs, with the number of runs of each.
func listed(runs []*plantedRun) string {
	of := map[string]int{}
	for _, r := range runs {
		of[r.faults()]++
	}
	var names []string
	for name, n := range of {
		names = append(names, fmt.Sprintf("%s (%d)", name, n))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
