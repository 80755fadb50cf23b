package mapping

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/layout"
)

// expression is a sum of products of whole numbers and names: "L+16*P", "S-1", "h*d".
type expression struct {
	text  string
	terms []term
}

type term struct {
	sign    int
	factors []string
}

var (
	expressionText = regexp.MustCompile(`^\s*-?\s*\w+(\s*[-+*]\s*\w+)*\s*$`)
	factorText     = regexp.MustCompile(`^([0-9]{1,9}|[A-Za-z][A-Za-z0-9_]*)$`)
	termText       = regexp.MustCompile(`([-+]?)([^-+]+)`)
)

// newExpression reads an expression.
func newExpression(text string) (*expression, error) {
	e := &expression{text: strings.TrimSpace(text)}
	if !expressionText.MatchString(text) {
		return nil, fmt.Errorf("%q is not a number: want names and numbers with +, - and *", text)
	}
	for _, m := range termText.FindAllStringSubmatch(strings.ReplaceAll(text, " ", ""), -1) {
		t := term{sign: 1, factors: strings.Split(m[2], "*")}
		if m[1] == "-" {
			t.sign = -1
		}
		for _, f := range t.factors {
			if !factorText.MatchString(f) {
				return nil, fmt.Errorf("%q in %q is neither a name nor a number of nine digits at most", f, text)
			}
		}
		e.terms = append(e.terms, t)
	}
	return e, nil
}

// names are the names in the expression, in order.
func (e *expression) names() []string {
	var list []string
	for _, t := range e.terms {
		for _, f := range t.factors {
			if f[0] < '0' || f[0] > '9' {
				list = append(list, f)
			}
		}
	}
	return list
}

// plain reports whether the expression is only a name.
func (e *expression) plain() bool {
	return len(e.terms) == 1 && e.terms[0].sign == 1 && len(e.terms[0].factors) == 1 && len(e.names()) == 1
}

// value computes the expression. of has the numbers of the names.
func (e *expression) value(of func(string) (int, bool)) (int, error) {
	sum := 0
	for _, t := range e.terms {
		product := t.sign
		for _, f := range t.factors {
			n, err := strconv.Atoi(f)
			if err != nil {
				var ok bool
				if n, ok = of(f); !ok {
					return 0, fmt.Errorf("%q: what is %s? Write its number", e.text, f)
				}
			}
			if n != 0 && (product > layout.Most/n || product < -layout.Most/n) || n > layout.Most {
				return 0, fmt.Errorf("%q is too large a number", e.text)
			}
			product *= n
		}
		if sum += product; sum > layout.Most || sum < -layout.Most {
			return 0, fmt.Errorf("%q is too large a number", e.text)
		}
	}
	return sum, nil
}
