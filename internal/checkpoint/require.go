package checkpoint

import (
	"fmt"
	"slices"
	"strings"
)

// Want is a weight that a model needs.
type Want struct {
	Name     string
	Fallback string // the name to use where Name is absent; empty for none
	Shape    []int
}

// Problem is one weight that is not as the model needs it.
type Problem struct {
	Name  string // as it would be in the file, with its prefix
	Want  []int
	Found []int // nil: the weight is missing
	DType string
}

// String says what is wrong in one line.
func (p Problem) String() string {
	switch {
	case p.DType != "":
		return fmt.Sprintf("%s is %s; float32, bfloat16 and float16 are read", p.Name, p.DType)
	case p.Found == nil:
		return fmt.Sprintf("%s %v is missing", p.Name, p.Want)
	}
	return fmt.Sprintf("%s is %v, want %v", p.Name, p.Found, p.Want)
}

// WeightsError lists every weight that is missing, misshapen or of a type that is not read.
type WeightsError struct {
	Problems []Problem
	Tensors  int    // in the files altogether
	Prefix   string // found before the text model's names
}

// maxListed keeps an error readable when a whole model is of another shape.
const maxListed = 4

// Error names the weights one a line, the first four of them.
func (e *WeightsError) Error() string {
	var b strings.Builder
	if len(e.Problems) == 1 {
		return "1 weight does not fit the configuration: " + e.Problems[0].String()
	}
	fmt.Fprintf(&b, "%d weights do not fit the configuration:", len(e.Problems))
	for i, p := range e.Problems {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Problems)-maxListed)
			break
		}
		fmt.Fprintf(&b, "\n  %s", p)
	}
	return b.String()
}

// Hint names the usual cause of the problems, by their kind.
func (e *WeightsError) Hint() string {
	missing, unread := 0, 0
	for _, p := range e.Problems {
		switch {
		case p.DType != "":
			unread++
		case p.Found == nil:
			missing++
		}
	}
	switch {
	case unread == len(e.Problems):
		return "convert the checkpoint to bfloat16, float16 or float32 first"
	case missing == len(e.Problems) && e.Tensors > 0 && missing > 10:
		return fmt.Sprintf("the files hold %d tensors under prefix %q; does config.json belong to these weights, and is it a text model?", e.Tensors, e.Prefix)
	case missing == len(e.Problems):
		return "the download may be incomplete: compare the directory with the one it came from"
	}
	return "config.json and the weights are from different models; sizes in config.json give the wanted shapes"
}

// Require checks that every weight exists with its shape, in float32, bfloat16 or float16. The error is a *WeightsError with all problems.
func (c *Checkpoint) Require(wants []Want) error {
	e := &WeightsError{Tensors: len(c.tensors), Prefix: c.prefix}
	for _, w := range wants {
		t, ok := c.Tensor(w.Name)
		if !ok && w.Fallback != "" {
			t, ok = c.Tensor(w.Fallback)
		}
		p := Problem{Name: c.prefix + strings.TrimPrefix(w.Name, c.prefix), Want: w.Shape} // a recorded program has whole names
		switch {
		case !ok:
		case !slices.Equal(t.Shape, w.Shape):
			p.Found = t.Shape
			if p.Found == nil {
				p.Found = []int{}
			}
		case !t.DType.Float() || t.DType.Size() == 8 || t.DType.Size() == 1:
			p.DType = t.DType.String()
		default:
			continue
		}
		e.Problems = append(e.Problems, p)
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}
