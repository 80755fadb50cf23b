package recorded

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// fileConstant is a constant as the file has it.
type fileConstant struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Name    string   `json:"name"`
	From    []recipe `json:"from"`
	Depends []string `json:"depends"`
	Data    raw      `json:"data"`
	SHA256  string   `json:"sha256"`
	Buffer  bool     `json:"buffer"`
}

// recipe is a way to make a constant from token ids, positions and lengths.
type recipe struct {
	Kind   string `json:"kind"`
	Value  number `json:"value"`
	Of     string `json:"of"`
	Window int    `json:"window"`
	Seen   number `json:"seen"`
	Hidden number `json:"hidden"`
}

// number is a number that may be none of JSON's: {"number": "-inf"}.
type number float64

var named = map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1)}

// UnmarshalJSON reads a number, a flag, or one by name.
func (n *number) UnmarshalJSON(data []byte) error {
	var x float64
	if json.Unmarshal(data, &x) == nil {
		*n = number(x)
		return nil
	}
	var flag bool
	if json.Unmarshal(data, &flag) == nil {
		if *n = 0; flag {
			*n = 1
		}
		return nil
	}
	var by struct {
		Number string `json:"number"`
	}
	if err := json.Unmarshal(data, &by); err != nil {
		return err
	}
	x, ok := named[by.Number]
	if !ok {
		return fmt.Errorf("%q is not a number", by.Number)
	}
	*n = number(x)
	return nil
}

// constant reads a constant: the stored numbers, or the numbers of the first recipe whose numbers have the recorded
// digest.
func (r *reader) constant(c *fileConstant, what string) (*Constant, error) {
	d, err := hooks.ParseDType(c.DType)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	n, err := Elements(c.Shape)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	out := &Constant{DType: c.DType, Shape: c.Shape, SHA256: c.SHA256, Depends: c.Depends}
	if c.Data != nil && string(c.Data) != "null" {
		data, err := decoded(c.Data)
		switch sum := sha256.Sum256(data); {
		case err != nil:
			return nil, fmt.Errorf("%s: its data: %w", what, err)
		case len(data) != n*d.Size():
			return nil, fmt.Errorf("%s: %d bytes of data, not %d", what, len(data), n*d.Size())
		case hex.EncodeToString(sum[:]) != c.SHA256:
			return nil, fmt.Errorf("%s: its data do not have the digest in the file", what)
		}
		out.Numbers = make([]float64, n)
		return out, floats.Decode(out.Numbers, d, data)
	}
	for _, from := range c.From {
		if from.Kind == "ids" {
			if len(c.From) > 1 || n != r.tokensOf(n) {
				return nil, fmt.Errorf("%s: %d numbers are not the token ids of a pass", what, n)
			}
			out.Is = InputIDs
			return out, nil
		}
		for i, p := range r.all {
			if i > 0 && from.Kind != "positions" && from.Kind != "mask" {
				continue
			}
			if r.made += n; r.made > maxMade {
				return nil, fmt.Errorf("%s: more than %d numbers have to be made", what, maxMade)
			}
			x := from.numbers(c.Shape, n, p)
			if x == nil || !sameDigest(x, d, c.SHA256) {
				continue
			}
			if out.Numbers = x; from.Kind == "positions" && n == p.Tokens {
				out.Is = positionIDs
			}
			if c.DType == r.DType {
				out.mask = from.mask(d, n, p)
			}
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s: it has no data, and no known rule gives its digest", what)
}

// decoded are the bytes of a text of base64 as the file has it.
func decoded(text raw) ([]byte, error) {
	if bytes.IndexByte(text, '\\') >= 0 {
		var plain string
		if err := json.Unmarshal(text, &plain); err != nil {
			return nil, err
		}
		return base64.StdEncoding.Strict().DecodeString(plain)
	}
	return base64.StdEncoding.Strict().AppendDecode(nil, bytes.Trim(text, `"`))
}

// The arguments of a model that constants may be.
const (
	InputIDs    = "input_ids"
	positionIDs = "position_ids"
)

// tokensOf is the number of tokens of a pass that has n; −1 where none has.
func (r *reader) tokensOf(n int) int {
	for _, p := range r.all {
		if p.Tokens == n {
			return n
		}
	}
	return -1
}

// numbers makes a constant for a pass; nil where the recipe gives none.
func (from *recipe) numbers(shape []int, n int, p Pass) []float64 {
	x := make([]float64, n)
	switch from.Kind {
	case "fill":
		for i := range x {
			x[i] = float64(from.Value)
		}
	case "count":
		for i := range x {
			x[i] = float64(i)
		}
	case "positions":
		if n != p.Tokens {
			return nil
		}
		for i := range x {
			x[i] = float64(p.Past + i)
		}
	case "mask":
		if len(shape) < 2 {
			return nil
		}
		rows, keys := shape[len(shape)-2], shape[len(shape)-1]
		if rows != p.Tokens || rows*keys != n {
			return nil
		}
		first := max(p.Past+p.Tokens-keys, 0)
		for i := range x {
			q, k := p.Past+i/keys, first+i%keys
			seen := from.Of == "all" || k <= q && (from.Window <= 0 || k > q-from.Window)
			if x[i] = float64(from.Hidden); seen {
				x[i] = float64(from.Seen)
			}
		}
	default:
		return nil
	}
	return x
}

// mask returns the mask that a recipe makes, if the recipe makes the mask of a pass that is added to scores; nil for
// another constant.
func (from *recipe) mask(d hooks.DType, n int, p Pass) *mask {
	lowest := program.Arith{DType: d, Emulated: true}.Lowest()
	if from.Kind != "mask" || from.Of == "all" || from.Seen != 0 || float64(from.Hidden) != lowest || n/p.Tokens > p.Past+p.Tokens {
		return nil
	}
	m := &mask{window: max(from.Window, 0), hidden: lowest}
	for i := range p.Tokens {
		m.positions = append(m.positions, float64(p.Past+i))
	}
	return m
}

// sameDigest reports whether numbers have a digest in a dtype.
func sameDigest(x []float64, d hooks.DType, digest string) bool {
	own, ok := Digest(x, d)
	return ok && own == digest
}

// Digest is the digest of numbers in a dtype; ok is false of a dtype in which none are made.
func Digest(x []float64, d hooks.DType) (digest string, ok bool) {
	if d.Float() && d.Size() == 1 {
		return "", false
	}
	sum := sha256.New()
	data := make([]byte, 0, chunk)
	for part := range slices.Chunk(x, chunk/8) {
		sum.Write(floats.Append(data, d, part...))
	}
	return hex.EncodeToString(sum.Sum(nil)), true
}
