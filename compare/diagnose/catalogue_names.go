package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// onRoles is a page for entries of some roles.
func onRoles(anchor, roles string) Page { return Page{Anchor: anchor, Roles: roles} }

// ofNames is a page for entries of some roles, where a term of the mistake or relation has a name that fits a pattern.
func ofNames(anchor, roles, names string) Page {
	fits := pattern(names)
	return Page{
		Anchor: anchor, Roles: roles,
		If: func(m Mistake) bool { return anyNamed(fits(), m.Of, m.By, m.For) || fits().MatchString(m.Called) },
		Of: func(r Relation) bool { return anyNamed(fits(), r.Of, r.By) },
	}
}

// anyNamed reports whether the name of a term fits a pattern.
func anyNamed(fits *regexp.Regexp, terms ...Term) bool {
	return slices.ContainsFunc(terms, func(t Term) bool { return fits.MatchString(t.Name) })
}

// ofBy is a page for mistakes and relations whose term By passes a test.
func ofBy(anchor, roles string, is func(Term) bool) Page {
	return Page{Anchor: anchor, Roles: roles, If: func(m Mistake) bool { return is(m.By) }, Of: func(r Relation) bool { return is(r.By) }}
}

// ofByName is ofBy with a pattern for the name.
func ofByName(anchor, roles, names string) Page {
	fits := pattern(names)
	return ofBy(anchor, roles, func(t Term) bool { return fits().MatchString(t.Name) })
}

// ofOf is a page for mistakes whose term Of passes a test.
func ofOf(anchor, roles string, is func(Term) bool) Page {
	return Page{Anchor: anchor, Roles: roles, If: func(m Mistake) bool { return is(m.Of) }}
}

// isKind makes a test for the kind of a term.
func isKind(kinds ...TermKind) func(Term) bool {
	return func(t Term) bool { return slices.Contains(kinds, t.Kind) }
}

// isBefore reports whether a term is of the pass before.
func isBefore(t Term) bool { return t.Before }

// namePages and laterNamePages are the pages that follow from the name of another tensor, weight or operation. The pages of the kind itself come between
// them.
var (
	namePages = []Page{
		ofNames("rotary-scaling", tables, `scal`),
		ofNames("keys-cached-before-rotation", caches, `k_norm|k_proj`),
		ofNames("attention-soft-cap", attendedTo, `tanh`),
		ofNames("direction-of-rotation", rotated, `rope\.sum|turned|sin`),
		ofNames("attention-soft-cap", `scores`, `cap|tanh|clip|clamp`),
		ofNames("rotary-before-norm", norms, `rope`),
		ofNames("inverted-norm", norms, `quotient`),
		ofNames("one-plus-the-weight", norms, `1\+w`),
		ofNames("activation-sparsity", `sparse|cutoff|act_fn`, `cutoff|std\.|quantile|sparse`),
	}
	laterNamePages = []Page{
		ofNames("activation", functions, `activation|gelu|silu`),
		ofNames("per-layer-rows", `^embed_tokens_per_layer$`, `table|row|ids`),
		ofNames("logit-soft-cap", `^logits$`, `cap|tanh|factor`),
	}
)

// routers are the roles of the input and the output of AltUp's router.
const routers = `router_input$|modalities$`

// pagesWithNames are the pages of a kind whose terms have names. Its first two lists go before and after namePages; laterNamePages and the last list end
// the pages.
func pagesWithNames(before, behind []Page, last ...Page) []Page {
	return slices.Concat(before, namePages, behind, laterNamePages, last)
}

// statisticWords are the numbers that are computed from each row, by their names.
var statisticWords = map[string]string{
	"largest-magnitude": "the largest magnitude", "largest-square": "the square of the largest magnitude", "mean-magnitude": "the mean magnitude",
	"mean-square": "the mean square", "root-mean-square": "the root mean square", "variance": "the variance", "deviation": "the standard deviation",
	"average": "the mean", "maximum": "the maximum", "sum-of-magnitudes": "the sum of magnitudes", "sum-of-squares": "the sum of squares",
	"length": "the length", "sum": "the sum",
}

// statistic says what a number is that is computed from each row.
func (m Mistake) statistic() string {
	what := m.For.String()
	switch {
	case m.X.Has:
		return short(m.X.Value) + " times " + what
	case m.Kind == "number.times-statistic":
		return short(m.Right.Value) + " times " + what
	case m.Kind == "number.over-statistic":
		return short(m.Right.Value) + " divided by " + what
	}
	return what
}

// numberOf counts the number of a mistake.
func numberOf(m Mistake) int {
	if m.X.Has {
		return 1
	}
	return 0
}

// breaks lists the breaks of a curve.
func (n Numbers) breaks() string {
	c := n.curve()
	if c == nil {
		return ""
	}
	var all []string
	for _, x := range c.breaks {
		all = append(all, short(inDigits(x, 3)))
	}
	return listed(all)
}

// size fills the hole of a size: n, m, k, or a sum of these and of whole numbers.
func (m Mistake) size(name string) (words string, has bool) {
	sum, sign, signed := 0, 1, strings.HasPrefix(name, "+")
	for _, part := range parts.FindAllString(name, -1) {
		switch part {
		case "+":
			sign = 1
		case "-":
			sign = -1
		case "n":
			sum += sign * m.N
		case "m":
			sum += sign * m.M
		case "k":
			sum += sign * m.K
		default:
			n, err := strconv.Atoi(part)
			if err != nil {
				panic("a hole {" + name + "} in the words of " + string(m.Kind))
			}
			sum += sign * n
		}
	}
	if signed {
		return fmt.Sprintf("%+d", sum), sum != 0
	}
	return strconv.Itoa(sum), sum != 0
}

// parts are the parts of a sum of sizes.
var parts = regexp.MustCompile(`[a-z]+|\d+|.`)
