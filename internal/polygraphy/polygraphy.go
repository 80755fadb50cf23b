// Package polygraphy reads the JSON in which NVIDIA's Polygraphy saves the outputs of a run: arrays as .npy files in base64, by
// their names, for each iteration of a runner. Arrays stay in the file and are decoded where they are read.
package polygraphy

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/npy"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/tracekey"
)

// Is reports whether a file begins as saved results do.
func Is(start []byte) bool {
	text := strings.TrimSpace(string(start))
	return strings.HasPrefix(text, "{") && strings.Contains(text, `"lst"`)
}

// Read lists the outputs of the only runner of a file of results in f. Iterations are passes: of iteration k > 0 the names begin with
// "pass<k>/".
func Read(r io.ReaderAt, size int64, f *container.File) error {
	f.Format = "Polygraphy results"
	v, err := parse(r, size)
	if err != nil {
		return err
	}
	root, ok := v.(object)
	if !ok || root.get("polygraphy_class") != "RunResults" {
		return errors.New("JSON of Polygraphy that is not RunResults")
	}
	runners, ok := root.get("lst").([]any)
	if !ok || len(runners) == 0 {
		return errors.New("results of Polygraphy of no runner")
	}
	if len(runners) > 1 {
		return hint.Add(fmt.Errorf("results of Polygraphy of %d runners", len(runners)), "save those of one runner: polygraphy run MODEL --onnxrt --save-outputs FILE")
	}
	pair, ok := runners[0].([]any)
	if !ok || len(pair) != 2 {
		return errors.New("results of Polygraphy of a runner without iterations")
	}
	iterations, _ := pair[1].([]any)
	for pass, it := range iterations {
		if err := iteration(f, r, pass, it); err != nil {
			return err
		}
	}
	if len(f.Tensors) == 0 {
		return errors.New("results of Polygraphy without outputs")
	}
	f.Note("Polygraphy results of runner %s: an iteration is a pass", plain.Quote(fmt.Sprint(pair[0])))
	return nil
}

func iteration(f *container.File, r io.ReaderAt, pass int, v any) error {
	it, _ := v.(object)
	outputs, ok := it.get("outputs").(object)
	if !ok {
		return fmt.Errorf("iteration %d has no outputs", pass)
	}
	seen := map[string]bool{}
	for _, m := range outputs {
		if seen[m.key] {
			return fmt.Errorf("iteration %d has %s twice", pass, plain.Quote(m.key))
		}
		seen[m.key] = true
		t, err := array(r, m.value)
		if err != nil {
			return fmt.Errorf("iteration %d, %s: %w", pass, plain.Quote(m.key), err)
		}
		t.Name = tracekey.Key{Pass: pass, Name: m.key}.String()
		f.Tensors = append(f.Tensors, t)
	}
	return nil
}

// array reads one output: an ndarray, or a LazyArray around one.
func array(r io.ReaderAt, v any) (container.Tensor, error) {
	o, _ := v.(object)
	if o.get("polygraphy_class") == "LazyArray" {
		o, _ = o.get("values").(object)
	}
	if class := o.get("polygraphy_class"); class != "ndarray" {
		return container.Tensor{}, fmt.Errorf("an output that is not a numpy array, but %.40q", fmt.Sprint(class))
	}
	var data decoded
	switch text := o.get("array").(type) {
	case string:
		data = decoded{bytes.NewReader([]byte(text)), 0, int64(len(text))}
	case span:
		data = decoded{r, text.at, text.length}
	default:
		return container.Tensor{}, errors.New("an array without data")
	}
	size, err := data.size()
	if err != nil {
		return container.Tensor{}, err
	}
	return npy.Array(data, size)
}

// decoded is the bytes that a text in base64 stands for, at any place: four characters are three bytes.
type decoded struct {
	r          io.ReaderAt
	at, length int64
}

func (d decoded) size() (int64, error) {
	if d.length == 0 || d.length%4 != 0 {
		return 0, errors.New("an array whose text is not base64")
	}
	var end [2]byte
	if _, err := d.r.ReadAt(end[:], d.at+d.length-2); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return d.length/4*3 - int64(bytes.Count(end[:], []byte("="))), nil
}

// ReadAt reads bytes as [io.ReaderAt] does.
func (d decoded) ReadAt(p []byte, off int64) (int, error) {
	size, err := d.size()
	if err != nil {
		return 0, err
	}
	var end error
	if rest := size - off; int64(len(p)) > rest {
		p, end = p[:max(rest, 0)], io.EOF
	}
	if len(p) == 0 {
		return 0, end
	}
	const piece = 48 << 10 // bytes at a time, whole groups of three
	done := 0
	for done < len(p) {
		from := (off + int64(done)) / 3
		to := min((off+int64(min(len(p), done+piece))+2)/3, d.length/4)
		text := make([]byte, (to-from)*4)
		if n, err := d.r.ReadAt(text, d.at+from*4); n < len(text) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return done, err
		}
		out := make([]byte, (to-from)*3)
		n, err := base64.StdEncoding.Decode(out, text)
		if err != nil {
			return done, fmt.Errorf("an array whose text is not base64: %w", err)
		}
		skip := int(off + int64(done) - from*3)
		k := copy(p[done:], out[skip:n])
		if k == 0 {
			return done, io.ErrUnexpectedEOF
		}
		done += k
	}
	return done, end
}
