package ggmltext

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/internal/hint"
)

// run is which indexes of an axis are printed: as many from the start on and, where some are left out, as many up to the end.
type run struct {
	head, tail int
	elided     bool
}

// fits reports whether a run can be that of an axis.
func (r run) fits(size int) bool {
	if r.elided {
		return r.head+r.tail < size
	}
	return r.head == size
}

// add counts one more printed index.
func (r *run) add() {
	if r.elided {
		r.tail++
	} else {
		r.head++
	}
}

// printed is how many indexes there are in the text.
func (r run) printed() int { return r.head + r.tail }

// body reads the elements below the heading of a tensor. Its axes are those of ggml, the innermost first.
type body struct {
	of   heading
	s    *scanner
	more bool // the scanner's line is not read yet

	axes     [3]run // of the first row, matrix, block; all others have to have the same
	known    [3]bool
	blocks   int // along the outermost axis, which is printed whole
	count    int64
	decimals int // the fewest of any element; −1: none was read
	sum      float64
	summed   bool
	cut      bool // the text ends in it
}

// half is half a unit of the last printed decimal.
func (b *body) half() float64 { return 0.5 * math.Pow10(-max(b.decimals, 0)) }

func (b *body) errorf(format string, args ...any) error {
	return hint.Add(fmt.Errorf("line %d, in tensor %.60q: %s", b.s.number, b.of.name, fmt.Sprintf(format, args...)),
		"something else was printed into the text, or a part is missing: print nothing else, on one thread")
}

// read reads up to the next line that is not the tensor's. Each element goes to see, which may be nil, in the order of the text.
func (b *body) read(see func(v float64)) error {
	b.decimals = -1
	depth := 0
	var at [3]run // of what is being read: row, matrix, block
	for ; b.more; b.more = b.s.next() {
		line := strings.TrimSpace(b.s.line)
		if b.s.open && (depth > 0 || strings.HasPrefix(line, "s")) {
			b.more = false // a line that is not whole
			break
		}
		if depth == 0 {
			text, sum := strings.CutPrefix(line, "sum = ")
			switch {
			case line == "[" && b.blocks < b.of.size[3]:
				depth, at[2] = 1, run{}
			case sum && b.blocks > 0:
				v, err := number(text)
				b.sum, b.summed = v, err == nil
			default:
				if b.blocks > 0 && b.blocks != b.of.size[3] {
					return b.errorf("%d blocks, but its size there is %d", b.blocks, b.of.size[3])
				}
				return nil
			}
			continue
		}
		var err error
		switch mark := strings.TrimRight(line, ", "); {
		case b.s.long:
			err = b.errorf("a line of more than %d bytes", maxLine)
		case mark == "[" && depth == 1:
			depth, at[1] = 2, run{}
		case mark == "...":
			err = b.leaveOut(&at[3-depth])
		case mark == "]" && depth == 2:
			at[2].add()
			depth, err = 1, b.close(1, at[1])
		case mark == "]":
			b.blocks++
			depth, err = 0, b.close(2, at[2])
		case depth == 2 && strings.HasPrefix(mark, "[") && strings.HasSuffix(mark, "]"):
			at[1].add()
			at[0], err = b.row(mark[1:len(mark)-1], see)
			if err == nil {
				err = b.close(0, at[0])
			}
		default:
			err = b.errorf("%.60q does not belong to it", line)
		}
		if err != nil {
			return err
		}
	}
	b.cut = depth > 0 || b.blocks > 0 && b.blocks != b.of.size[3]
	return b.s.err
}

// leaveOut is the mark for what is not printed.
func (b *body) leaveOut(r *run) error {
	if r.elided {
		return b.errorf("two marks of left-out elements on one axis")
	}
	r.elided = true
	return nil
}

// close checks the elements printed along an axis against the axis's size and against other prints of the same elements.
func (b *body) close(axis int, r run) error {
	switch {
	case !r.fits(b.of.size[axis]):
		return b.errorf("%d of %d elements of an axis", r.printed(), b.of.size[axis])
	case b.known[axis] && b.axes[axis] != r:
		return b.errorf("other elements of an axis than before")
	}
	b.axes[axis], b.known[axis] = r, true
	return nil
}

// row reads "0.1234, -0.5678, 0.0000, ..., 0.1000".
func (b *body) row(text string, see func(v float64)) (run, error) {
	var r run
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "..." {
			if err := b.leaveOut(&r); err != nil {
				return r, err
			}
			continue
		}
		v, err := number(item)
		if err != nil {
			return r, b.errorf("%.40q is not a number", item)
		}
		if _, fraction, _ := strings.Cut(item, "."); !math.IsNaN(v) && !math.IsInf(v, 0) && (b.decimals < 0 || len(fraction) < b.decimals) {
			b.decimals = len(fraction)
		}
		r.add()
		b.count++
		if see != nil {
			see(v)
		}
	}
	return r, nil
}

// number reads what printf writes for %f.
func number(text string) (float64, error) {
	switch strings.TrimPrefix(text, "-") {
	case "nan":
		return math.NaN(), nil
	case "inf":
		return strconv.ParseFloat(text, 64)
	}
	if strings.Trim(text, "-0123456789.") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}
