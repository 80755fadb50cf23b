package debug

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tracediff/tracediff/hooks"
)

// line is output in the making: whole lines and the line that is being written. Its methods append a key and a value
// without allocating, since every tensor has a line.
type line []byte

func (l *line) begin(kind string) { *l = append(append(*l, "debug: "...), kind...) }

func (l *line) end() { *l = append(*l, '\n') }

func (l *line) key(key string) { *l = append(append(append(*l, ' '), key...), '=') }

func (l *line) int(key string, n int64) {
	l.key(key)
	*l = strconv.AppendInt(*l, n, 10)
}

// number writes six digits, like %.6g of C, and "-" for NaN, which stands for a missing number.
func (l *line) number(key string, x float64) {
	l.key(key)
	switch {
	case x != x:
		*l = append(*l, '-')
	case math.IsInf(x, 1):
		*l = append(*l, "inf"...)
	case math.IsInf(x, -1):
		*l = append(*l, "-inf"...)
	default:
		*l = strconv.AppendFloat(*l, x, 'g', 6, 64)
	}
}

// ms writes milliseconds.
func (l *line) ms(key string, d time.Duration) {
	l.key(key)
	*l = strconv.AppendFloat(*l, float64(d)/float64(time.Millisecond), 'f', 3, 64)
}

// percent writes a share in percent, with one decimal, and "-" for NaN.
func (l *line) percent(key string, share float64) {
	if share != share {
		l.word(key, "-")
		return
	}
	l.key(key)
	*l = strconv.AppendFloat(*l, 100*share, 'f', 1, 64)
}

// word writes a text without spaces, so that awk can split the line at spaces: bytes that are not printable ASCII become
// \xNN, and an empty text becomes "-".
func (l *line) word(key, text string) {
	l.key(key)
	for i := range len(text) {
		switch c := text[i]; {
		case c <= ' ' || c >= 0x7f:
			*l = fmt.Appendf(*l, `\x%02x`, c)
		case c == '"' || c == '\\':
			*l = append(*l, '\\', c)
		default:
			*l = append(*l, c)
		}
	}
	if text == "" {
		*l = append(*l, '-')
	}
}

// text writes a text in double quotes, with quotes and backslashes escaped. Control characters and the line ends of
// Unicode become \xNN or \uNNNN, so that no name and no token can end the line or control the terminal.
func (l *line) text(key, text string) {
	l.key(key)
	*l = append(*l, '"')
	for _, r := range text {
		switch {
		case r < ' ' || r >= 0x7f && r < 0xa0:
			*l = fmt.Appendf(*l, `\x%02x`, r)
		case r == '\u2028' || r == '\u2029':
			*l = fmt.Appendf(*l, `\u%04x`, r)
		case r == '"' || r == '\\':
			*l = append(*l, '\\', byte(r))
		default:
			*l = append(*l, string(r)...)
		}
	}
	*l = append(*l, '"')
}

func (l *line) shape(shape []int) {
	l.key("shape")
	*l = append(*l, '[')
	for i, n := range shape {
		if i > 0 {
			*l = append(*l, ',')
		}
		*l = strconv.AppendInt(*l, int64(n), 10)
	}
	*l = append(*l, ']')
}

// counts writes the two infinities separately: in a correct model a mask may have minus infinity.
func (l *line) counts(of counts) {
	l.int("nan", of.nan)
	l.int("inf", of.posInf)
	l.int("neg_inf", of.negInf)
}

// tensor writes the line of a hook. If masked elements were left out of the statistics, the line has their number.
func (l *line) tensor(pass int, name string, t hooks.Tensor, of *statistics, elapsed time.Duration) {
	s := of.Summary(1)
	if math.IsInf(s.Std, 0) { // float64 does not hold the sum of squares
		s.Std = math.NaN()
	}
	l.begin("tensor")
	l.int("pass", int64(pass))
	l.word("name", name)
	l.shape(t.Shape)
	l.word("dtype", t.DType.String())
	l.number("min", s.Min)
	l.number("max", s.Max)
	l.number("mean", s.Mean)
	l.number("std", s.Std)
	l.counts(countsOf(&of.Moments))
	l.ms("ms", elapsed)
	if of.masked > 0 {
		l.int("masked", of.masked)
	}
	l.end()
}
