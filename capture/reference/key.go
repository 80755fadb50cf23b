package reference

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// Runner identifies the maker of a reference by name and version: after a change of the version, older traces of
// the runner are not used.
type Runner struct {
	Name    string `json:"runner"`
	Version string `json:"version"`
}

// The names of runners.
const (
	Transformers = "hf"   // version: a digest of the embedded runner and its pinned packages
	GoWalk       = "go"   // version: the versions of the walk and of the JSON of TENSOR_ORDER
	External     = "exec" // version: the command line and its folder
)

// producers are the producers in the traces of the two built-in runners. A command may give any producer.
var producers = map[string]string{Transformers: "transformers", GoWalk: WalkName}

// IsProducer reports whether a program makes references: transformers or the walk.
func IsProducer(p capture.Producer) bool {
	return p.Name == producers[Transformers] || p.Name == producers[GoWalk]
}

// TransformersRunner is the embedded transformers runner.
func TransformersRunner() Runner { return Runner{Transformers, hfVersion()} }

// WalkRunner is the float64 walk.
func WalkRunner() Runner {
	return Runner{GoWalk, walkVersion + "." + strconv.Itoa(order.FormatVersion)}
}

// CommandRunner is a command line, as it was typed, and its working folder: ./port names a different program in a
// different folder. The program can change although the command line stays the same.
func CommandRunner(line, folder string) Runner { return Runner{External, line + "\nin " + folder} }

// Key is everything that a stored reference depends on.
type Key struct {
	Weights   string        `json:"weights"` // digest, or "unknown"
	Config    string        `json:"config"`  // digest of its canonical form
	Tokens    string        `json:"tokens"`  // ids of the passes of the input: "2,513,88;17"
	NewTokens int           `json:"new_tokens,omitempty"`
	DType     string        `json:"dtype"`
	Order     string        `json:"order"` // digest of the recorded list, as JSON
	Scope     capture.Scope `json:"scope"` // what was captured
	Runner
}

// NewKey returns the key of a wanted reference, for a scope and a runner.
func NewKey(w Wanted, scope capture.Scope, r Runner) Key {
	return Key{w.Weights, digest(w.Config), FormatTokens(w.Passes), w.NewTokens, w.DType.String(), w.Order, scope, r}
}

// String is the name of the key: 16 hexadecimal digits of the SHA-256 of its JSON.
func (k Key) String() string {
	text, err := json.Marshal(k)
	if err != nil { // of strings, an int and a scope
		panic(err)
	}
	return digest(text)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// OrderDigest identifies a list by its JSON.
func OrderDigest(l *order.List) (string, error) {
	text, err := json.Marshal(l)
	return digest(text), err
}

// FormatTokens writes the ids of passes: "2,513,88;17".
func FormatTokens(passes [][]int) string {
	var b strings.Builder
	for n, ids := range passes {
		if n > 0 {
			b.WriteByte(';')
		}
		for i, id := range ids {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Itoa(id))
		}
	}
	return b.String()
}

// Refusal is the reason against a stored reference: the first component of its key that differs from the wanted
// reference. Components go from the model to the input and then to the runner, so a later component is a nearer miss.
type Refusal struct {
	Component int // the index of the component, from 0
	Why       string
}

// Error is the reason.
func (r *Refusal) Error() string { return r.Why }

// refusal compares an entry with the wanted reference, component by component; nil if the entry can be used. The ids of
// decoded passes are not in the key, but only in the trace.
func (e *Entry) refusal(w Wanted, r Runner) *Refusal {
	k := e.Key
	otherRunner := "it was made by another runner (" + k.Name + ")"
	if k.Name == r.Name {
		otherRunner = map[string]string{
			Transformers: "it was made by another version of the transformers runner", GoWalk: "it was made by another version of the walk",
			External: "it was made by another command, or in another folder",
		}[k.Name]
	}
	for i, c := range []struct {
		differs bool
		why     string
	}{
		{k.Config != digest(w.Config), "it is of a model with another configuration"},
		{known(k.Weights) && known(w.Weights) && k.Weights != w.Weights, "it is of other weights"},
		{!(known(k.Weights) && known(w.Weights)) && filepath.Base(e.Model) != filepath.Base(w.Model), "it is of " + e.Model + ", and the digest of these weights is not known"},
		{!known(w.Weights) && w.Changed.After(e.Made), fmt.Sprintf("the weights of %s were changed after it was made", w.Model)},
		{!w.startsWith(k), "it has other token ids"},
		{k.DType != w.DType.String(), fmt.Sprintf("it was computed in %s, not in %s", k.DType, w.DType)},
		{k.Order != w.Order, "it was captured by another order"},
		{!covers(k.Scope, w.Scope), fmt.Sprintf("its scope is narrower (level %d%s)", k.Scope.Level, limits(k.Scope))},
		{k.Runner != r, otherRunner},
	} {
		if c.differs {
			return &Refusal{i, c.why}
		}
	}
	return nil
}

// startsWith reports whether the passes of a key can begin with the wanted passes. Wanted passes may be among the
// decoded passes of the key; only the trace has the ids and the number of decoded passes, so startsWith accepts such a
// key.
func (w Wanted) startsWith(k Key) bool {
	wanted := FormatTokens(w.Passes)
	return k.Tokens == wanted || strings.HasPrefix(k.Tokens, wanted+";") || k.NewTokens > 0 && strings.HasPrefix(wanted, k.Tokens+";")
}

// covers reports whether a capture at scope a has every tensor and row of scope b.
func covers(a, b capture.Scope) bool {
	same := func(x, y capture.Ranges) bool { return len(x) == 0 || x.String() == y.String() }
	return a.Level >= b.Level && same(a.Layers, b.Layers) && same(a.Passes, b.Passes) && same(a.Positions, b.Positions) &&
		(len(a.Tensors) == 0 || slices.Equal(a.Tensors, b.Tensors))
}

// limits lists the limits of a scope, in words.
func limits(s capture.Scope) string {
	out := ""
	for _, part := range []struct{ name, value string }{
		{"layers", s.Layers.String()}, {"passes", s.Passes.String()}, {"positions", s.Positions.String()}, {"tensors", strings.Join(s.Tensors, " ")},
	} {
		if part.value != "" {
			out += ", " + part.name + " " + part.value
		}
	}
	return out
}

// agrees returns an error for a trace that contradicts its key, and otherwise the ids of the wanted passes. A trace
// of an external command may declare nothing; then only the ids are checked.
func (w Wanted) agrees(t *capture.Trace, k Key) ([][]int, error) {
	if k.Name != External {
		passes, err := w.Fits(t)
		if by, want := t.Manifest().Producer.Name, producers[k.Name]; err == nil && by != want {
			return nil, fmt.Errorf("it says that %q made it, and it is stored as one of %s", by, want)
		}
		return passes, err
	}
	if err := w.SameModel(t); err != nil {
		return nil, err
	}
	m := t.Manifest()
	switch {
	case m.Status != "" && m.Status != capture.StatusComplete:
		return nil, fmt.Errorf("it is not complete (%s)", m.Status)
	case m.DType != 0 && m.DType != w.DType:
		return nil, fmt.Errorf("it was computed in %s, not in %s", m.DType, w.DType)
	case len(t.Records()) == 0:
		return nil, errors.New("it holds no tensors")
	}
	passes, err := t.IDs()
	if err != nil {
		return nil, err
	}
	return w.Match(passes)
}
