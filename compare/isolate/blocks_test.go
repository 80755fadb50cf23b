package isolate_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/tracediff/tracediff/compare"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/program"
)

// What is said of an entry does not depend on how many tokens of it are looked at at one time: its certificate, and which
// mistakes it would have shown. The entries of a golden are small, so all that have rows are made large here.
func TestBlocksGiveTheSameBits(t *testing.T) {
	ctx := t.Context()
	for _, golden := range []string{"gemma3n-tiny/decode.float32", "gemma3n-tiny/decode.bfloat16", "gemma3-tiny/decode.bfloat16"} {
		t.Run(golden, func(t *testing.T) {
			trace := testengine.OpenGolden(t, "golden/"+golden+".safetensors")
			whole := isolated(ctx, t, trace, isolate.BlockElements)
			for _, block := range []int{1, 300} { // a token at a time, and several
				got := isolated(ctx, t, trace, block)
				if got.blocks == 0 {
					t.Fatalf("no entry has blocks of %d elements", block)
				}
				if block == 1 && got.queries == 0 {
					t.Error("no attention is computed some queries at a time")
				}
				if whole.blocks+whole.queries > 0 {
					t.Errorf("%d entries of a small trace have blocks", whole.blocks+whole.queries)
				}
				for key, want := range whole.certificates {
					if got := got.certificates[key]; got != want {
						t.Errorf("%s in blocks of %d elements:\n%s, want\n%s", key, block, got, want)
					}
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
	trace := testengine.OpenGolden(t, "golden/"+golden+".safetensors")
	var want string
	for _, block := range []int{isolate.BlockElements, 300} {
		ck, list := ordertest.Embedded(t, path.Dir(golden))
		weights := reference.Weights(ck, trace.Manifest().DType)
		i, err := compare.NewIsolator(trace, list, func(w order.Weight) (program.Rows, error) {
			rows, err := weights(w)
			return otherRows{rows}, err
		}, isolate.Options{Arithmetic: isolate.Strict})
		if err != nil {
			t.Fatal(err)
		}
		i.Block = block
		c, err := i.Certify(t.Context(), "lm_head", 0)
		if err != nil {
			t.Fatal(err)
		}
		tokens := int64(i.Env().Passes[0].Tokens)
		if got := fmt.Sprintf("%+v", *c); c.Outcome != isolate.Bug || c.Outside != 2*tokens || want != "" && got != want {
			t.Errorf("in blocks of %d elements: %s, want %s", block, got, want)
		} else {
			want = got
		}
	}
}

// A name that gives the tokens that a search of a large entry has looked at, and not the others, is no name unless it says these tokens, whether the name is
// looked for before the entry is certified or while it is.
func TestNamesHoldInAllParts(t *testing.T) {
	const golden, factor = "gemma3n-tiny/decode.float32", 1.5
	healthy := testengine.OpenGolden(t, "golden/"+golden+".safetensors")
	tokens := isolatorOf(t, healthy).Env().Passes[0].Tokens
	for _, wrong := range []int{isolate.FocusTokens, tokens} { // the first tokens, and all
		trace := withOther(t, healthy, "logits", func(x []float64) {
			for k := range len(x) / tokens * wrong {
				x[k] *= factor
			}
		})
		for _, block := range []int{isolate.BlockElements, 64} {
			for _, certified := range []bool{false, true} {
				i := isolatorIn(t, trace, "gemma3n-tiny")
				i.Block = block
				if certified {
					if c, err := i.Certify(t.Context(), "logits", 0); err != nil || c.Outcome != isolate.Bug {
						t.Fatalf("%+v, %v", c, err)
					}
				}
				f, err := i.Name(t.Context(), "logits")
				if err != nil {
					t.Fatal(err)
				}
				// Where an entry has parts, its certificate has judged them with the mistake, and no product is taken again.
				at := order.Node{Entry: i.List().Index("logits")}
				if judged := i.Names.Parts[at]; judged != (certified && block == 64 && wrong == tokens) {
					t.Errorf("%d of %d tokens are wrong, in blocks of %d elements, certified before %v: judged with the mistake %v", wrong, tokens, block, certified, judged)
				}
				only := diagnose.Spots("") // the tokens that the name says
				if wrong != tokens {
					only = "tokens=0-3"
				}
				if f.Named() != (wrong == tokens || block != 64) || f.Named() && f.Mistake.Only != only {
					t.Errorf("%d of %d tokens are wrong, in blocks of %d elements, certified before %v: %q", wrong, tokens, block, certified, f.Text())
				}
			}
		}
	}
}

// withOther copies a trace, one tensor of float32 of the first pass with other numbers.
func withOther(t *testing.T, from *capture.Trace, name string, change func(x []float64)) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "changed.safetensors")
	w, err := capture.Create(path, from.Manifest(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range from.Records() {
		x, err := from.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Name == name && r.Pass == 0 {
			v, err := from.Value(0, name)
			if err != nil {
				t.Fatal(err)
			}
			change(v.Data)
			x.Data = x.Data[:0:0]
			for _, y := range v.Data {
				x.Data = binary.LittleEndian.AppendUint32(x.Data, math.Float32bits(float32(y)))
			}
		}
		if err := w.Observe(hooks.Event{Name: r.Name, Pass: r.Pass, Tensor: x}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
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
	certificates map[string]string
	sight        string
	blocks       int // of rows
	queries      int // entries of attention that were computed some queries at a time
}

// digits are the numbers of a text that are not whole.
var digits = regexp.MustCompile(`\d+\.\d+(e[+-]\d+)?`)

// rounded is a text with twelve digits of each number.
func rounded(text string) string {
	return digits.ReplaceAllStringFunc(text, func(number string) string {
		v, _ := strconv.ParseFloat(number, 64)
		return strconv.FormatFloat(v, 'g', 12, 64)
	})
}

func isolated(ctx context.Context, t *testing.T, trace *capture.Trace, block int) (s seen) {
	t.Helper()
	i := isolatorOf(t, trace)
	i.Block = block
	s.certificates = map[string]string{}
	for _, r := range trace.Records() {
		n := order.Node{Entry: i.List().Index(r.Name), Pass: r.Pass}
		if n.Entry < 0 || !i.Has(n) {
			continue
		}
		of, err := i.Unread(n, i.Has)
		if isolate.Lacking(err) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if of.Pieces() > 0 {
			if of.Block() > 0 {
				s.blocks++
			} else {
				s.queries++
			}
			if c, err := isolate.InBlocks(ctx, of); c == nil || err != nil {
				t.Errorf("%s is not certified in blocks of %d elements: %v", r.Key, block, err)
			}
		}
		c, err := i.Certify(t.Context(), r.Name, r.Pass)
		if err != nil {
			t.Fatal(err)
		}
		s.certificates[r.Key] = fmt.Sprintf("%+v", *c)
		if !isolate.RowAfterRow(i.Isolator, n) { // rows of a token are summed up head by head, or token by token
			s.certificates[r.Key] = rounded(s.certificates[r.Key])
		}
	}
	sight, err := detectable.Find(t.Context(), i.Forms, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.sight = fmt.Sprintf("%+v", *sight)
	return s
}

// isolatorOf opens the embedded checkpoint that a golden was made of.
func isolatorOf(t *testing.T, trace *capture.Trace) *compare.Isolator {
	t.Helper()
	return isolatorIn(t, trace, path.Base(path.Dir(trace.Path())))
}

// isolatorIn isolates a trace of an embedded checkpoint.
func isolatorIn(t *testing.T, trace *capture.Trace, model string) *compare.Isolator {
	t.Helper()
	ck, list := ordertest.Embedded(t, model)
	i, err := compare.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return i
}
