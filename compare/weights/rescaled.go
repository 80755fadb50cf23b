package weights

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/weights/awq"
	"github.com/tracediff/tracediff/hooks"
)

// rescaling is the comparison as the search for factors that cancel sees it.
type rescaling struct {
	*comparison
	r  *reader
	at map[*awq.Tensor]judged
}

// judged is a pair and its row.
type judged struct {
	*job
	row *Row
}

// rescale searches for factors that cancel between tensors. A tensor with cancelling factors becomes right, a tensor with uncertain
// factors becomes unidentified.
func (c *comparison) rescale(ctx context.Context, jobs []*job, rows []Row) error {
	s := &rescaling{c, &reader{}, map[*awq.Tensor]judged{}}
	var tensors []*awq.Tensor
	for i, j := range jobs {
		t := &awq.Tensor{Name: rows[i].Name, Called: rows[i].Name}
		if j.original != nil {
			t.Name = plainName(j.original.Name)
		}
		if l, o := j.local, j.original; l != nil && o != nil {
			t.Shape, t.Coding, t.Fits = l.Shape, l.Coding, l.check() == nil && o.check() == nil && slices.Equal(l.Shape, o.Shape)
		}
		tensors, s.at[t] = append(tensors, t), judged{j, &rows[i]}
	}
	return awq.Search(ctx, s, tensors)
}

// verdicts are those of classes, as far as the search tells them apart.
var verdicts = map[Class]awq.Verdict{Equal: awq.Equal, Quantised: awq.Quantised, Cast: awq.Right, Rescaled: awq.Right, Different: awq.Different}

func (s *rescaling) Verdict(t *awq.Tensor) awq.Verdict {
	if v, ok := verdicts[s.at[t].row.Class]; ok {
		return v
	}
	return awq.Other
}

func (s *rescaling) Slopes(ctx context.Context, t *awq.Tensor, f awq.Factors) (columns, rows *awq.Slopes, err error) {
	local, v := s.at[t].local, view{t: scaledBy(&f, s.at[t].original)}
	n, m := local.flat()
	columns, rows = awq.NewSlopes(m), awq.NewSlopes(n)
	for p := range v.parts {
		b, err := s.r.read(ctx, local, v, p)
		if err != nil {
			return nil, nil, err
		}
		for i, l := range b.local {
			if b.coding == nil || !b.Last(i, l) {
				columns.Add(p.c0+i%p.columns(), l, b.original[i])
				rows.Add(p.r0+i/p.columns(), l, b.original[i])
			}
		}
	}
	return columns, rows, nil
}

func (s *rescaling) Vector(ctx context.Context, t *awq.Tensor) (local, original []float64, err error) {
	j := s.at[t]
	b, err := s.r.read(ctx, j.local, view{t: j.original}, part{0, 1, 0, j.local.elements()})
	return b.local, b.original, err
}

func (s *rescaling) Judge(ctx context.Context, t *awq.Tensor, f awq.Factors) error {
	j := s.at[t]
	row, err := s.pair(ctx, s.r, moving(j.local), scaledBy(&f, j.original)) // the factors are measured, and AWQ clips
	if err != nil {
		return err
	}
	row.Name, row.Original = j.row.Name, stored(j.original)
	if f.Columns != nil {
		row.note("its columns are the original's times %s to %s, and their inputs are divided by the same factors", number(slices.Min(f.Columns)), number(slices.Max(f.Columns)))
	}
	if f.Rows != nil {
		row.note("its rows are the original's divided by %s to %s, and the columns that read them are multiplied by the same factors", number(slices.Min(f.Rows)), number(slices.Max(f.Rows)))
	}
	*j.row = row
	return nil
}

func (s *rescaling) Rescaled(t *awq.Tensor, factors []float64) {
	j := s.at[t]
	row := newRow(j.local, j.original)
	row.Name, row.Relative, row.Class = j.row.Name, j.row.Relative, Rescaled
	row.note("it is the original's divided by %s to %s, and the columns that read its result are multiplied by the same factors, as AWQ does", number(slices.Min(factors)), number(slices.Max(factors)))
	*j.row = row
}

func (s *rescaling) Suspect(t *awq.Tensor, norm string, apart float64) {
	row := s.at[t].row
	if norm == "" {
		row.wrong(Unidentified, LargeErrors, "its columns have factors of their own, %s standard errors from each other, as AWQ makes them; it is not known what this layer divides by them", number(apart))
		return
	}
	row.wrong(Unidentified, LargeErrors, "its columns, and the columns of every matrix after %s, have factors of their own, %s standard errors from each other: AWQ makes such factors and divides the norm by them, but the norm is the original's", norm, number(apart))
}

func (s *rescaling) SuspectNorm(t, matrix *awq.Tensor, factors []float64) {
	s.at[t].row.wrong(Unidentified, LargeErrors, "the columns of %s have the factors, %s to %s, by which it is divided, as AWQ makes them; it is not known what else this layer multiplies by it", matrix.Called, number(slices.Min(factors)), number(slices.Max(factors)))
}

// scaledBy is a tensor with factors, in float32.
func scaledBy(f *awq.Factors, t *Tensor) *Tensor {
	if !f.Any() {
		return t
	}
	scaled := *t
	scaled.DType, scaled.Data = hooks.F32, &scaledData{f, t}
	return &scaled
}

// scaledData reads the numbers of a tensor with factors, as float32.
type scaledData struct {
	factors *awq.Factors
	t       *Tensor
}

// ReadAt reads whole numbers.
func (d *scaledData) ReadAt(into []byte, at int64) (int, error) {
	const size = 4
	_, columns := d.t.flat()
	from := int(at / size)
	values := make([]float64, len(into)/size)
	var buf buffer
	if err := buf.read(values, d.t.Data, d.t.DType, from); err != nil {
		return 0, err
	}
	for i, x := range values {
		if d.factors.Columns != nil {
			x *= d.factors.Columns[(from+i)%columns]
		}
		if d.factors.Rows != nil {
			x /= d.factors.Rows[(from+i)/columns]
		}
		binary.LittleEndian.PutUint32(into[size*i:], math.Float32bits(float32(x)))
	}
	return len(into), nil
}
