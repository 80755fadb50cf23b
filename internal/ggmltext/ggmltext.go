// Package ggmltext reads the text that llama.cpp's eval-callback prints while a model runs: for each tensor of the graph a line with
// its name, type, operation and sizes, and below it some of its elements, rounded to decimals, and their sum.
//
// Of an axis of more than six elements, except the outermost, the first three and the last three are printed. An element that is not
// printed is read as the NaN of [container.Elided], so that a tensor keeps its shape, and can be transposed and cut like any other.
// [container.Printed] marks such a tensor.
//
// The format is that of ggml-org/llama.cpp, common/debug.cpp, and of older versions in examples/eval-callback.
package ggmltext

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/tracekey"
)

const (
	// searched is how many bytes of a text are looked at for its first tensor: what the loader prints of a model comes before it.
	searched = 4 << 20
	// maxTensors bounds the tensors of a text: some thousand in a pass, of some dozen passes.
	maxTensors = 50_000
	// maxIDs bounds the token ids of a text.
	maxIDs = 1 << 20
	// maxLine bounds a line that means something, in bytes. Longer ones are passed over.
	maxLine = 4096
)

// The marks are the names of the printing functions. The older function sums only the printed elements, or did for some time; the newer sums
// all elements.
const (
	mark    = "common_debug_cb_eval:"
	oldMark = "ggml_debug:"
)

// Is reports whether a text of size bytes has a tensor as eval-callback prints one.
func Is(r io.ReaderAt, size int64) bool {
	s := newScanner(r, min(size, searched))
	for s.next() {
		if marked(s.line) {
			return true
		}
	}
	return false
}

// Read lists the tensors of a text in f, in the order of their lines, and the token ids where the text has them. A name that
// comes again in one pass is a further firing. A pass begins where the first tensor of the text comes again.
func Read(r io.ReaderAt, size int64, f *container.File) error {
	f.Format, f.Order = "text of llama.cpp's eval-callback", true
	p := reader{file: f, in: r, size: size, fired: map[string]int{}}
	s := newScanner(r, size)
	for more := s.next(); more; {
		h, ok := header(s.line)
		if !ok && marked(s.line) && !s.open {
			return fmt.Errorf("line %d: %.80q is not the heading of a tensor", s.number, s.line)
		}
		if !ok {
			more = p.other(s)
			continue
		}
		var err error
		if more, err = p.tensor(s, h); err != nil {
			return err
		}
	}
	if s.err != nil {
		return s.err
	}
	if len(f.Tensors) == 0 {
		return hint.Add(errors.New("a text of llama.cpp's eval-callback without a tensor"), "did the run that wrote it end?")
	}
	p.note()
	p.ids()
	return nil
}

// marked reports whether a line begins as a heading does.
func marked(line string) bool {
	return strings.HasPrefix(line, mark) || strings.HasPrefix(line, oldMark)
}

// heading is the line of a tensor.
type heading struct {
	name, kind, op string
	size           [4]int // as ggml has them: the innermost axis first
	sums           bool   // what is printed as its sum is that of all elements
}

// header reads "common_debug_cb_eval:  Qcur-0 = (f32)  ROPE(Qcur-0 (reshaped){8, 2, 5, 1}, leaf_7{5, 1, 1, 1}}) = {8, 2, 5, 1}".
func header(line string) (heading, bool) {
	h := heading{sums: true}
	rest, ok := strings.CutPrefix(line, mark)
	if !ok {
		h.sums = false
		if rest, ok = strings.CutPrefix(line, oldMark); !ok {
			return h, false
		}
	}
	name, rest, ok := strings.Cut(rest, " = (")
	kind, rest, ok2 := strings.Cut(rest, ")")
	at := strings.LastIndex(rest, " = {")
	if !ok || !ok2 || at < 0 {
		return h, false
	}
	h.name, h.kind = strings.TrimSpace(name), kind
	h.op, _, _ = strings.Cut(strings.TrimSpace(rest[:at]), "(")
	inner, ok := strings.CutSuffix(strings.TrimSpace(rest[at+len(" = {"):]), "}")
	sizes := strings.Split(inner, ", ")
	if !ok || len(sizes) != len(h.size) || h.name == "" {
		return h, false
	}
	for i, text := range sizes {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return h, false
		}
		h.size[i] = n
	}
	return h, true
}

// kinds are the types of elements that are read. Integers are indexes, which no comparison needs.
var kinds = map[string]hooks.DType{"f32": hooks.F32, "f16": hooks.F16, "bf16": hooks.BF16}

// reader lists the tensors of one text.
type reader struct {
	file  *container.File
	in    io.ReaderAt
	size  int64
	first string         // the name and operation of the first tensor
	pass  int            // that is being read
	fired map[string]int // how often, by name, in this pass

	headings int

	tokens  []int64
	listing int // how many more ids the text announced
	bare    int // tensors without elements, or of a type that is not read
	cut     string
}

// note says what was read, and what was not.
func (p *reader) note() {
	p.file.Note("%s: it has some elements of a tensor, rounded; the others are read as NaN", p.file.Format)
	if p.bare > 0 {
		p.file.Note("%d tensors left out: quantised, of integers, empty, or without elements", p.bare)
	}
	if p.cut != "" {
		p.file.Note("the text ends in the middle of %s, which is left out; llama.cpp's program may end before it has printed everything: run it again until the text has result_output", plain.Quote(p.cut))
	}
}

// other reads a line that is no tensor: the token ids are announced, and stand on lines of their own.
func (p *reader) other(s *scanner) bool {
	line := logged(s.line)
	if n, ok := strings.CutPrefix(line, "number of input tokens = "); ok && len(p.file.Tensors) == 0 {
		count, err := strconv.Atoi(n)
		if p.tokens = nil; err == nil && count > 0 && count <= maxIDs {
			p.listing = count
		}
		return s.next()
	}
	if p.listing > 0 {
		id, err := strconv.ParseInt(line, 10, 32)
		if p.listing--; err != nil || id < 0 {
			p.listing, p.tokens = 0, nil
			return s.next()
		}
		p.tokens = append(p.tokens, id)
	}
	return s.next()
}

// logged is the content of a log line, without a time and the level "I" in front.
func logged(line string) string {
	if _, rest, ok := strings.Cut(line, " I "); ok {
		line = rest
	}
	return strings.TrimSpace(line)
}

// ids lists the token ids of the prompt, where all are there.
func (p *reader) ids() {
	if len(p.tokens) == 0 || p.listing > 0 {
		p.file.Note("the text has no token ids: print the log to it as well (2>&1)")
		return
	}
	data := make([]byte, 0, 8*len(p.tokens))
	for _, id := range p.tokens {
		data = binary.LittleEndian.AppendUint64(data, uint64(id))
	}
	p.file.Tensors = slices.Insert(p.file.Tensors, 0, container.Tensor{Name: "input_ids", DType: hooks.I64, Shape: []int{1, len(p.tokens)}, Data: bytes.NewReader(data)})
}

// tensor reads the text below a heading, and reports whether more follows.
func (p *reader) tensor(s *scanner, h heading) (more bool, err error) {
	if p.headings++; p.headings > maxTensors {
		return false, fmt.Errorf("line %d: more than %d headings", s.number, maxTensors)
	}
	switch at := h.name + " " + h.op; {
	case p.first == "":
		p.first = at
	case p.first == at:
		p.pass++
		clear(p.fired)
	}
	key := tracekey.Key{Pass: p.pass, Name: h.name, Firing: p.fired[h.name]}.String()
	p.fired[h.name]++
	shape := []int{h.size[3], h.size[2], h.size[1], h.size[0]}
	if n, ok := hooks.Elements(shape); !ok || n > maxElements {
		return false, fmt.Errorf("line %d: %s of sizes %v, which no memory holds", s.number, plain.Quote(h.name), h.size)
	}
	more = s.next()
	g := &grid{in: p.in, begin: s.at, number: s.number, size: h.size}
	b := &body{of: h, s: s, more: more}
	if err := b.read(nil); err != nil {
		return false, err
	}
	g.end, g.dtype = s.at, kinds[h.kind]
	if !b.more {
		g.end = p.size
	}
	switch n, _ := hooks.Elements(shape); {
	case b.cut:
		p.cut = h.name
	case g.dtype == 0 || n == 0 || b.blocks == 0:
		p.bare++
	default:
		t := container.Tensor{Name: key, DType: g.dtype, Shape: shape, Data: g, Printed: &container.Printed{Half: b.half(), Elements: b.count, All: int64(n)}}
		if t.Printed.HasSum = b.summed && h.sums; t.Printed.HasSum {
			t.Printed.Sum = b.sum
		}
		p.file.Tensors = append(p.file.Tensors, t)
	}
	return b.more, nil
}

// scanner reads lines.
type scanner struct {
	r      *bufio.Reader
	line   string // without its end; of a long one, the beginning
	long   bool
	open   bool // the text ends in it
	number int
	at     int64 // where the line begins
	end    int64
	err    error
}

func newScanner(r io.ReaderAt, size int64) *scanner {
	return &scanner{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), int(min(size, 1<<16)))}
}

// next reads a line; false at the end, and for an error.
func (s *scanner) next() bool {
	s.at, s.long, s.open = s.end, false, false
	var kept []byte
	for {
		piece, err := s.r.ReadSlice('\n')
		s.end += int64(len(piece))
		if room := maxLine - len(kept); len(piece) <= room {
			kept = append(kept, piece...)
		} else {
			kept, s.long = append(kept, piece[:room]...), true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			s.err = err
			return false
		case err != nil && len(kept) == 0:
			return false
		}
		s.open = err != nil
		s.number++
		s.line = strings.TrimRight(string(kept), "\r\n")
		return true
	}
}
