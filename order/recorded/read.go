package recorded

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/hooks"
)

// Version is the version of the format that [Read] reads.
const Version = 1

// file is a program as it is written: lines that several layers and passes share stand in a template.
type file struct {
	Format    string                 `json:"format"`
	Version   int                    `json:"version"`
	Class     string                 `json:"class"`
	ModelType string                 `json:"model_type"`
	Producer  map[string]string      `json:"producer"`
	DType     string                 `json:"dtype"`
	Passes    []filePass             `json:"passes"`
	Runs      [][]filePass           `json:"runs"`
	Alone     string                 `json:"alone"`
	Templates [][]json.RawMessage    `json:"templates"`
	Weights   map[string]*fileWeight `json:"weights"`
	Constants []*fileConstant        `json:"constants"`
	Lines     []string               `json:"lines"`
}

type filePass struct {
	Tokens int      `json:"tokens"`
	Past   int      `json:"past"`
	Calls  [][3]any `json:"calls"`
}

type fileWeight struct {
	fileConstant
	File       string   `json:"file"`
	Transposed bool     `json:"transposed"`
	Rows       [][2]any `json:"rows"`
	Unknown    bool     `json:"unknown"`
}

// line is a line of a template.
type line struct {
	Op    string         `json:"op"`
	In    []any          `json:"in"`
	Out   []any          `json:"out"`
	Attr  map[string]any `json:"attr"`
	At    any            `json:"at"`
	Name  any            `json:"name"`
	Of    any            `json:"of"`
	Level any            `json:"level"`
}

// reader expands a file.
type reader struct {
	*file
	templates [][]line
	passes    [][]Pass // of each run
	all       []Pass   // of all runs
	run       int      // the first value of the run that is expanded
	numbers   int      // of constants so far
	made      int      // to find them
	values    []Value  // of the steps so far
	constants []*Constant
	weights   map[string]*Weight
}

// Read reads a recorded program, which is not trusted: what it says of sizes, of views and of what comes before what is checked,
// and the error says where it is wrong.
func Read(in io.Reader) (*Program, error) {
	data, err := io.ReadAll(io.LimitReader(in, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("more than %d MiB", MaxBytes>>20)
	}
	r := &reader{file: &file{}, weights: map[string]*Weight{}}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(r.file); err != nil {
		return nil, fmt.Errorf("not the JSON of a recorded program: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something stands behind the end of the program")
	}
	switch {
	case r.Format != "tracediff program":
		return nil, fmt.Errorf("its format is %.40q, not %q", r.Format, "tracediff program")
	case r.Version != Version:
		return nil, fmt.Errorf("it is of version %d, and this reads version %d", r.Version, Version)
	}
	if err := r.texts(); err != nil {
		return nil, err
	}
	if err := r.lengths(); err != nil {
		return nil, err
	}
	if err := r.tables(); err != nil {
		return nil, err
	}
	for n, passes := range r.runs() {
		r.run = len(r.values)
		for i := range passes {
			if err := r.pass(&passes[i], &r.passes[n][i]); err != nil {
				return nil, fmt.Errorf("%spass %d: %w", ofRun(n), i, err)
			}
		}
	}
	p := &Program{
		Class: r.Class, ModelType: r.ModelType, Producer: r.Producer, Passes: r.passes[0], runs: r.passes[1:],
		Weights: r.weights, Constants: r.constants, Sources: r.Lines, values: r.values, alone: r.Alone,
	}
	p.DType = p.dtype()
	if r.DType != "" {
		if p.DType, err = hooks.ParseDType(r.DType); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// texts refuses what reports would show as more than a line, or as something else than it is.
func (r *file) texts() error {
	for k, s := range r.Lines {
		if !printable(s, 1<<12) {
			return fmt.Errorf("line of source %d is %.60q", k, s)
		}
	}
	for name, w := range r.Weights {
		if !printable(name, 1<<10) || w != nil && !(printable(w.File, 1<<10) && printable(w.DType, 1<<6)) {
			return fmt.Errorf("%.80q is no weight's name, or its file or dtype is no text of one line", name)
		}
	}
	if !printable(r.Class, 1<<10) || !printable(r.ModelType, 1<<10) || !printable(r.Alone, 1<<12) {
		return errors.New("its class, model_type or alone is no text of one line")
	}
	for key, value := range r.Producer {
		if !printable(key, 1<<10) || !printable(value, 1<<10) {
			return fmt.Errorf("its producer has %.60q", key)
		}
	}
	return nil
}

// rowsOf are the tensors of the checkpoint that a weight is made of.
func rowsOf(w *fileWeight) ([]Tensor, error) {
	var all []Tensor
	n := 0
	for _, row := range w.Rows {
		t := Tensor{}
		sizes, list := row[1].([]any)
		t.Name, _ = row[0].(string)
		for _, d := range sizes {
			size, ok := whole(d)
			list = list && ok
			t.Shape = append(t.Shape, size)
		}
		k, err := count(t.Shape)
		if err != nil || !list || t.Name == "" {
			return nil, fmt.Errorf("%.60v is no tensor of the checkpoint with its shape", row)
		}
		n += k
		all = append(all, t)
	}
	if own, _ := count(w.Shape); len(all) > 0 && n != own {
		return nil, fmt.Errorf("%d tensors of %d elements together, not %d", len(all), n, own)
	}
	return all, nil
}

// dtype is that of most of the parameters' elements.
func (p *Program) dtype() hooks.DType {
	of := map[hooks.DType]int{}
	for _, w := range p.Weights {
		if d, err := hooks.ParseDType(w.DType); err == nil && w.Data == nil {
			n, _ := count(w.Shape)
			of[d] += n
		}
	}
	best := hooks.F32
	for _, d := range slices.Sorted(maps.Keys(of)) {
		if of[d] > of[best] {
			best = d
		}
	}
	return best
}

// count is the number of elements of a shape.
func count(shape []int) (int, error) {
	if len(shape) > maxRank {
		return 0, fmt.Errorf("%d axes, more than %d", len(shape), maxRank)
	}
	n := 1
	for _, d := range shape {
		if d < 0 || d > maxElements || n*max(d, 1) > maxElements {
			return 0, fmt.Errorf("the shape %v has more than %d elements, or fewer than none", shape, maxElements)
		}
		n *= max(d, 1)
	}
	if slices.Contains(shape, 0) {
		n = 0
	}
	return n, nil
}

// tables reads what passes refer to: templates, constants and weights.
func (r *reader) tables() error {
	for i, rows := range r.Templates {
		lines := make([]line, len(rows))
		for k, row := range rows {
			d := json.NewDecoder(bytes.NewReader(row))
			d.UseNumber()
			if err := d.Decode(&lines[k]); err != nil {
				return fmt.Errorf("line %d of template %d: %w", k, i, err)
			}
		}
		r.templates = append(r.templates, lines)
	}
	lines := 0
	for _, passes := range r.runs() {
		for _, p := range passes {
			for _, call := range p.Calls {
				if n, ok := whole(call[0]); ok && n >= 0 && n < len(r.templates) {
					lines += len(r.templates[n])
				}
			}
		}
		if lines > maxLines {
			return fmt.Errorf("more than %d lines in all passes", maxLines)
		}
	}
	for i, c := range r.file.Constants {
		if c == nil {
			return fmt.Errorf("constant %d is null", i)
		}
		made, err := r.constant(c, fmt.Sprintf("constant %d", i))
		if err != nil {
			return err
		}
		r.constants = append(r.constants, made)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Weights)) {
		w := r.Weights[name]
		if w == nil {
			return fmt.Errorf("weight %.80q is null", name)
		}
		if _, err := count(w.Shape); err != nil {
			return fmt.Errorf("weight %.80q: %w", name, err)
		}
		out := &Weight{Name: name, DType: w.DType, Shape: w.Shape, File: w.File, Turned: w.Transposed, Lost: w.Unknown}
		var err error
		if out.Rows, err = rowsOf(w); err != nil {
			return fmt.Errorf("weight %.80q: %w", name, err)
		}
		if out.File == "" {
			out.File = name
		}
		if w.Data != nil || len(w.From) > 0 {
			if out.Data, err = r.constant(&w.fileConstant, fmt.Sprintf("weight %.80q", name)); err != nil {
				return err
			}
		}
		r.weights[name] = out
	}
	return nil
}

// runs are the passes of the run that the program is of, and those of runs of other lengths.
func (r *reader) runs() [][]filePass { return append([][]filePass{r.Passes}, r.Runs...) }

// ofRun says, in front of an error, of which run it is.
func ofRun(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("run %d: ", n)
}

// lengths reads how long the passes are.
func (r *reader) lengths() error {
	all := 0
	for n, passes := range r.runs() {
		if all += len(passes); len(passes) == 0 || all > maxPasses {
			return fmt.Errorf("%sit has %d passes, want 1 to %d in all", ofRun(n), len(passes), maxPasses)
		}
		own := make([]Pass, len(passes))
		for i, p := range passes {
			if p.Tokens < 0 || p.Past < 0 || p.Tokens > maxElements || p.Past > maxElements {
				return fmt.Errorf("%spass %d has %d tokens after %d", ofRun(n), i, p.Tokens, p.Past)
			}
			own[i] = Pass{Tokens: p.Tokens, Past: p.Past}
		}
		r.passes, r.all = append(r.passes, own), append(r.all, own...)
	}
	return nil
}

// pass expands the calls of a pass.
func (r *reader) pass(from *filePass, to *Pass) error {
	names := map[string]bool{}
	to.first = len(r.values)
	for k, call := range from.Calls {
		template, ok := whole(call[0])
		layer, also := whole(call[1])
		holes, list := call[2].([]any)
		if !ok || !also || !list || template < 0 || template >= len(r.templates) || layer < -1 || layer > 1<<20 {
			return fmt.Errorf("call %d is %.80v: want a template, a layer and what its holes hold", k, call)
		}
		c := &caller{reader: r, layer: layer, holes: holes, first: len(r.values)}
		for n := range r.templates[template] {
			l, err := c.line(&r.templates[template][n])
			if err != nil {
				return fmt.Errorf("call %d, line %d of template %d: %w", k, n, template, err)
			}
			if l.Name != nil {
				if names[l.Name.Name] {
					return fmt.Errorf("call %d, line %d of template %d: a second %q", k, n, template, l.Name.Name)
				}
				names[l.Name.Name] = true
			}
			to.Lines = append(to.Lines, l)
		}
	}
	return nil
}

// rowMajor are the strides of a tensor without gaps.
func rowMajor(shape []int) []int {
	stride := make([]int, len(shape))
	n := 1
	for a := len(shape) - 1; a >= 0; a-- {
		stride[a] = n
		n *= max(shape[a], 1)
	}
	return stride
}

// orderOf is the order of axes in which memory has them, the outermost first, of strides that show each element once; ok is
// false of others.
func orderOf(shape, stride []int) (order []int, ok bool) {
	if len(shape) != len(stride) {
		return nil, false
	}
	for a := range shape {
		if shape[a] != 1 {
			order = append(order, a)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(stride[b], stride[a]) })
	for a := range shape { // an axis of one element changes nothing, wherever it stands
		if shape[a] == 1 {
			order = slices.Insert(order, min(a, len(order)), a)
		}
	}
	n := 1
	for _, a := range slices.Backward(order) {
		if shape[a] != 1 && stride[a] != n {
			return nil, false
		}
		n *= shape[a]
	}
	return order, true
}
