package certify

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// What is said of an entry does not depend on how many tokens of it are looked at at one time: its certificate, the numbers that are
// estimated from it, and which mistakes it would have shown. The entries of a golden are small, so all that have rows are made large here.
func TestBlocksGiveTheSameBits(t *testing.T) {
	for _, golden := range []string{"gemma3n-tiny/decode.float32", "gemma3n-tiny/decode.bfloat16", "gemma3-tiny/decode.bfloat16"} {
		t.Run(golden, func(t *testing.T) {
			data, err := fs.ReadFile(fixtures.Files, "golden/"+golden+".safetensors")
			if err != nil {
				t.Fatal(err)
			}
			trace, err := capture.OpenReader(golden, bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			whole := isolated(t, trace, blockElements)
			for _, block := range []int{1, 300} { // a token at a time, and several
				got := isolated(t, trace, block)
				if got.blocks == 0 {
					t.Fatalf("no entry has blocks of %d elements", block)
				}
				if whole.blocks > 0 {
					t.Errorf("%d entries of a small trace have blocks", whole.blocks)
				}
				for key, want := range whole.certificates {
					if got := got.certificates[key]; got != want {
						t.Errorf("%s in blocks of %d elements:\n%s, want\n%s", key, block, got, want)
					}
				}
				if got.numbers != whole.numbers {
					t.Errorf("numbers of blocks of %d elements:\n%s, want\n%s", block, got.numbers, whole.numbers)
				}
				if got.sight != whole.sight {
					t.Errorf("sight of blocks of %d elements:\n%s, want\n%s", block, got.sight, whole.sight)
				}
			}
		})
	}
}

// An entry of which something is left in one block is judged whole: the elements of two rows of the head's weight are outside for each token.
func TestBlocksWithSomethingWrong(t *testing.T) {
	const golden = "gemma3n-tiny/decode.bfloat16"
	data, err := fs.ReadFile(fixtures.Files, "golden/"+golden+".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	trace, err := capture.OpenReader(golden, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var want string
	for _, block := range []int{blockElements, 300} {
		i := isolatorOf(t, trace)
		i.block, i.o.Arithmetic = block, Strict
		weights := i.env.Weights
		i.env.Weights = func(w order.Weight) (program.Rows, error) {
			rows, err := weights(w)
			return otherRows{rows}, err
		}
		c, err := i.Certify(t.Context(), "lm_head", 0)
		if err != nil {
			t.Fatal(err)
		}
		tokens := int64(i.env.Passes[0].Tokens)
		if got := fmt.Sprintf("%+v", *c); c.Outcome != Bug || c.Outside != 2*tokens || want != "" && got != want {
			t.Errorf("in blocks of %d elements: %s, want %s", block, got, want)
		} else {
			want = got
		}
	}
}

// otherRows is a weight with other numbers in rows 3 and 7.
type otherRows struct{ program.Rows }

func (w otherRows) Row(dst []float64, i int) error {
	err := w.Rows.Row(dst, i)
	for k := range dst {
		if i == 3 || i == 7 {
			dst[k] += 0.5
		}
	}
	return err
}

// seen is what isolation says of a trace, as text that has every digit, and how many entries had blocks.
type seen struct {
	certificates   map[string]string
	numbers, sight string
	blocks         int
}

func isolated(t *testing.T, trace *capture.Trace, block int) (s seen) {
	t.Helper()
	i := isolatorOf(t, trace)
	i.block = block
	s.certificates = map[string]string{}
	for _, r := range trace.Records() {
		n := order.Node{Entry: i.list.Index(r.Name), Pass: r.Pass}
		if n.Entry < 0 || !i.has(n) {
			continue
		}
		of, err := i.unread(t.Context(), n, i.has)
		if lacking(err) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if of.block() > 0 {
			s.blocks++
			if c, err := of.inBlocks(); c == nil || err != nil {
				t.Errorf("%s is not certified in blocks of %d elements: %v", r.Key, block, err)
			}
		}
		c, err := i.Certify(t.Context(), r.Name, r.Pass)
		if err != nil {
			t.Fatal(err)
		}
		s.certificates[r.Key] = fmt.Sprintf("%+v", *c)
	}
	numbers, err := i.Below(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sight, err := i.Sight(t.Context(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.numbers, s.sight = fmt.Sprintf("%+v", numbers), fmt.Sprintf("%+v", *sight)
	return s
}

// isolatorOf opens the embedded checkpoint that a golden was made of.
func isolatorOf(t *testing.T, trace *capture.Trace) *Isolator {
	t.Helper()
	dir := path.Dir(trace.Path())
	sub, err := fs.Sub(fixtures.Files, dir)
	if err != nil {
		t.Fatal(err)
	}
	ck, err := checkpoint.OpenFS(dir, sub)
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ReadConfig(ck.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	i, err := NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), IsolateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return i
}
