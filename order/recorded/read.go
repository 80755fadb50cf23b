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
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
)

// version is the version of the format that [Read] reads.
const version = 1

// file is a program as it is written: lines that several layers and passes share stand in a template.
type file struct {
	Format    string            `json:"format"`
	Version   int               `json:"version"`
	Class     string            `json:"class"`
	ModelType string            `json:"model_type"`
	Producer  map[string]string `json:"producer"`
	DType     string            `json:"dtype"`
	Passes    []filePass        `json:"passes"`
	Runs      [][]filePass      `json:"runs"`
	Alone     string            `json:"alone"`
	Templates [][]raw           `json:"templates"` // each line a [line]
	Weights   map[string]raw    `json:"weights"`   // each a [fileWeight]
	Constants []raw             `json:"constants"` // each a [fileConstant]
	Lines     []string          `json:"lines"`
	// Expressions are as many as Lines, or none.
	Expressions []string `json:"expressions"`
}

type filePass struct {
	Tokens int   `json:"tokens"`
	Past   int   `json:"past"`
	Calls  []raw `json:"calls"` // each a template, a layer and what its holes hold
}

type fileWeight struct {
	fileConstant
	File       string   `json:"file"`
	Transposed bool     `json:"transposed"`
	Rows       [][2]raw `json:"rows"`
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
	made      int      // numbers, to find those of constants
	constants []*Constant
	weights   map[string]*Weight

	// Of the run that is expanded.
	first  int     // the number of its first value
	values []Value // of its steps so far
}

// Read reads a recorded program, which is not trusted. Read checks every claim about sizes, views and the order of
// steps, and the error names the wrong place. Runs of other lengths are checked when a caller asks for them, see
// [Program.Runs].
func Read(in io.Reader) (*Program, error) {
	data, err := readAll(in)
	if err != nil {
		return nil, err
	}
	r := &reader{file: &file{}, weights: map[string]*Weight{}}
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(data, r.file); {
	case errors.As(err, &syntax) && strings.Contains(syntax.Error(), "after top-level value"):
		return nil, errors.New("data follow the end of the program")
	case err != nil:
		return nil, fmt.Errorf("not the JSON of a recorded program: %w", err)
	case r.Format != "tracediff program":
		return nil, fmt.Errorf("its format is %.40q, not %q", r.Format, "tracediff program")
	case r.Version != version:
		return nil, fmt.Errorf("it is of version %d, and this reads version %d", r.Version, version)
	}
	for _, read := range []func() error{r.texts, r.lengths, r.lines, r.numbers, r.parameters} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	if err := r.expand(0); err != nil {
		return nil, err
	}
	p := &Program{
		Class: r.Class, ModelType: r.ModelType, Passes: r.passes[0], others: r.others(),
		Weights: r.weights, Constants: r.constants, Sources: r.sources(), Values: r.values, Alone: r.Alone,
	}
	p.DType = p.dtype()
	if r.DType != "" {
		if p.DType, err = hooks.ParseDType(r.DType); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// decode reads a part of a file. Numbers keep their written form, see [json.Number].
func decode(data raw, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// rowsOf are the tensors of the checkpoint that a weight is made of.
func rowsOf(w *fileWeight) ([]Tensor, error) {
	var all []Tensor
	n := 0
	for _, row := range w.Rows {
		t := Tensor{}
		list := json.Unmarshal(row[0], &t.Name) == nil && json.Unmarshal(row[1], &t.Shape) == nil
		k, err := Elements(t.Shape)
		if err != nil || !list || t.Name == "" {
			return nil, fmt.Errorf("%.60s is not the name and shape of a tensor of the checkpoint", row)
		}
		n += k
		all = append(all, t)
	}
	if own, _ := Elements(w.Shape); len(all) > 0 && n != own {
		return nil, fmt.Errorf("%d tensors of %d elements together, not %d", len(all), n, own)
	}
	return all, nil
}

// dtype is that of most of the parameters' elements.
func (p *Program) dtype() hooks.DType {
	of := map[hooks.DType]int{}
	for _, w := range p.Weights {
		if d, err := hooks.ParseDType(w.DType); err == nil && w.Data == nil {
			n, _ := Elements(w.Shape)
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

// Elements is the number of elements of a shape.
func Elements(shape []int) (int, error) {
	if len(shape) > maxRank {
		return 0, fmt.Errorf("%d axes, more than %d", len(shape), maxRank)
	}
	n := 1
	for _, d := range shape {
		if d < 0 || d > maxElements || n*max(d, 1) > maxElements {
			return 0, fmt.Errorf("the shape %v has more than %d elements, or a negative axis", shape, maxElements)
		}
		n *= max(d, 1)
	}
	if slices.Contains(shape, 0) {
		n = 0
	}
	return n, nil
}

// lines reads the templates, and refuses a file that would expand to too many lines or operands before it expands a
// call.
func (r *reader) lines() error {
	total := 0
	for _, rows := range r.Templates {
		if total += len(rows); total > maxWritten {
			return fmt.Errorf("more than %d lines in templates", maxWritten)
		}
	}
	for i, rows := range r.Templates {
		lines := make([]line, len(rows))
		for k, row := range rows {
			if err := decode(row, &lines[k]); err != nil {
				return fmt.Errorf("line %d of template %d: %w", k, i, err)
			}
		}
		r.templates = append(r.templates, lines)
	}
	all := 0
	for n := range r.runs() {
		lines, operands := r.expanded(n)
		switch all += lines; {
		case lines > maxLines:
			return fmt.Errorf("%smore than %d lines in all passes", ofRun(n), maxLines)
		case operands > maxAllOperands:
			return fmt.Errorf("%smore than %d operands and results in all passes", ofRun(n), maxAllOperands)
		case all > maxAllLines:
			return fmt.Errorf("more than %d lines in all runs", maxAllLines)
		}
	}
	return nil
}

// expanded is how many lines a run stands for, and how many operands and results they have.
func (r *reader) expanded(run int) (lines, operands int) {
	own := make([]int, len(r.templates))
	for i, template := range r.templates {
		for k := range template {
			own[i] += len(template[k].In) + len(template[k].Out)
		}
	}
	for _, p := range r.runs()[run] {
		for _, call := range p.Calls {
			if n := templateOf(call); n >= 0 && n < len(own) {
				lines, operands = lines+len(r.templates[n]), operands+own[n]
			}
		}
	}
	return lines, operands
}

// templateOf returns the template number of a call; −1 if the call does not begin with a number.
func templateOf(call raw) int {
	at, _, _ := bytes.Cut(bytes.TrimLeft(call, "[ \t\r\n"), []byte{','})
	n, err := strconv.Atoi(string(bytes.TrimSpace(at)))
	if err != nil {
		return -1
	}
	return n
}

// numbers reads the constants.
func (r *reader) numbers() error {
	if len(r.file.Constants)+len(r.Weights) > maxTables {
		return fmt.Errorf("more than %d constants and weights", maxTables)
	}
	all := make([]*fileConstant, len(r.file.Constants))
	total := 0
	for i, data := range r.file.Constants {
		if err := json.Unmarshal(data, &all[i]); err != nil {
			return fmt.Errorf("constant %d: %w", i, err)
		}
		if all[i] == nil {
			return fmt.Errorf("constant %d is null", i)
		}
		if err := add(&total, all[i].Shape); err != nil {
			return fmt.Errorf("constant %d: %w", i, err)
		}
	}
	for i, c := range all {
		made, err := r.constant(c, fmt.Sprintf("constant %d", i))
		if err != nil {
			return err
		}
		r.constants = append(r.constants, made)
	}
	return nil
}

// add adds the numbers of a constant to total. A total above MaxNumbers is an error.
func add(total *int, shape []int) error {
	n, err := Elements(shape)
	if *total += n; err == nil && *total > MaxNumbers {
		err = fmt.Errorf("more than %d numbers in constants", MaxNumbers)
	}
	return err
}

// parameters reads the weights.
func (r *reader) parameters() error {
	total := 0
	for _, c := range r.constants {
		n, _ := Elements(c.Shape)
		total += n
	}
	for _, name := range slices.Sorted(maps.Keys(r.Weights)) {
		var w *fileWeight
		if err := json.Unmarshal(r.Weights[name], &w); err != nil {
			return fmt.Errorf("weight %.80q: %w", name, err)
		}
		if w == nil {
			return fmt.Errorf("weight %.80q is null", name)
		}
		if !printable(name, 1<<10) || !printable(w.File, 1<<10) || !printable(w.DType, 1<<6) {
			return fmt.Errorf("%.80q is not the name of a weight, or its file or dtype is not one line of text", name)
		}
		if _, err := Elements(w.Shape); err != nil {
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
			if err := add(&total, w.Shape); err != nil {
				return fmt.Errorf("weight %.80q: %w", name, err)
			}
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

// ofRun is the prefix of an error that names the run; empty for the first run.
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

// RowMajor are the strides of a tensor without gaps.
func RowMajor(shape []int) []int {
	stride := make([]int, len(shape))
	n := 1
	for a := len(shape) - 1; a >= 0; a-- {
		stride[a] = n
		n *= max(shape[a], 1)
	}
	return stride
}

// AxisOrder is the order of axes in which memory has them, the outermost first, of strides that show each element once; ok is
// false of others.
func AxisOrder(shape, stride []int) (order []int, ok bool) {
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
