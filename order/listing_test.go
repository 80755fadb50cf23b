package order_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A size of the listed pass that no symbol stands for.
var unnamed = regexp.MustCompile(`\d{7}`)

// Every entry of every family lists as steps: whatever its shapes, each size is a number of the model or a symbol, and each
// operand is an index of what it shows, but for results whose axes are made one.
func TestListing(t *testing.T) {
	for _, family := range append(ordertest.Gemma, ordertest.Plain...) {
		for seed := range 10 {
			l := ordertest.Draw(t, family, seed).List
			for _, e := range l.Entries {
				lines, err := l.Listing(e.Name)
				if err != nil {
					t.Fatalf("%s %d: %v", family, seed, err)
				}
				if _, given := e.Op.(op.Given); given != (len(lines) == 0) {
					t.Errorf("%s %d: %s has %d steps", family, seed, e.Name, len(lines))
				}
				for i, line := range lines {
					all := strings.Join(append(line.Args, line.Shape...), " ")
					if unnamed.MatchString(all) && line.Prim != "number" && line.Prim != "vector" {
						t.Errorf("%s %d: %s lists %s", family, seed, e.Name, all)
					}
					if last := i == len(lines)-1; strings.Contains(all, " as (") && !last {
						t.Errorf("%s %d: %s: %s reads %s", family, seed, e.Name, line.Name, all)
					} else if last && strings.Join(line.Shape, " ") != shapeWords(e.Shape) {
						t.Errorf("%s %d: %s gives %v, its shape is %s", family, seed, e.Name, line.Shape, shapeWords(e.Shape))
					}
				}
			}
		}
	}
}

func TestListingOfNoOperation(t *testing.T) {
	l := ordertest.Draw(t, "llama", 0).List
	if _, err := l.Listing("my_tensor"); err == nil || err.Error() != "my_tensor has no operation" {
		t.Errorf("an unknown name: %v", err)
	}
}

func shapeWords[D interface{ String() string }](shape []D) string {
	words := make([]string, len(shape))
	for i, d := range shape {
		words[i] = d.String()
	}
	return strings.Join(words, " ")
}
