package weights

import (
	"context"
	"math"
	"regexp"
	"slices"
)

// unknownLayers looks at norms that differ in layers of which it is not known what their norms are multiplied with, or in which a norm may be by
// 1+w: where the columns of some matrix of codes of the layer have the norm's factors, AWQ may have made both, and nothing shows that it did.
// Known are the tensors of the other layers.
func (c *comparison) unknownLayers(ctx context.Context, r *reader, jobs []*job, known map[*job]bool, at map[*job]*Row) error {
	matrices := map[string][]*job{} // by layer
	prefix := func(j *job) string {
		if j.local == nil || j.original == nil || j.local.check() != nil || j.original.check() != nil || !slices.Equal(j.local.Shape, j.original.Shape) {
			return ""
		}
		if m := layerPrefix.FindStringSubmatch(plainName(j.original.Name)); m != nil {
			return m[1]
		}
		return ""
	}
	for _, j := range jobs {
		if p := prefix(j); p != "" && len(j.local.Shape) == 2 && j.local.Coding != nil && (j.local.Coding.Moves || j.local.Coding.Mixed) && !ofGGUF.MatchString(j.local.Format) {
			matrices[p] = append(matrices[p], j)
		}
	}
	for _, list := range matrices {
		for _, j := range list {
			if known[j] || at[j].Class != Quantised {
				continue
			}
			of, _, err := c.measure(ctx, r, j.local, view{t: j.original})
			if err != nil {
				return err
			}
			sum, weight := make([]float64, len(of.both)), make([]float64, len(of.both))
			for i := range sum {
				if f, v, ok := of.of(i); ok && v > 0 {
					sum[i], weight[i] = f/v, 1/v
				}
			}
			if apart := apartOf(sum, weight); apart > sameFactors {
				at[j].wrong(Unidentified, LargeErrors, "its columns have factors of their own, %s standard errors from each other, as AWQ makes them; what is divided by them is not known of this layer", number(math.Sqrt(apart)))
			}
		}
	}
	for _, j := range jobs {
		if p := prefix(j); p != "" && at[j].Class == Different && normName.MatchString(j.original.Name) {
			if err := c.suspectNorm(ctx, r, j, matrices[p], known[j], at[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofGGUF are formats whose codes may be too coarse for factors to be measured; the scales of AWQ are not written in them.
var ofGGUF = regexp.MustCompile(`^I?Q[0-9]`)

var normName = regexp.MustCompile(`norm\.weight$`)

// suspectNorm says of a norm that it is UNIDENTIFIED where the columns of one of some matrices have its factors, as w or as 1+w.
func (c *comparison) suspectNorm(ctx context.Context, r *reader, norm *job, matrices []*job, known bool, row *Row) error {
	for _, more := range []float64{0, 1} {
		if known && more == 0 {
			continue
		}
		scales, err := c.quotients(ctx, r, norm, more)
		if err != nil {
			return err
		}
		for _, j := range matrices {
			if scales == nil || j.local.Shape[1] != len(scales) {
				continue
			}
			is, err := c.cancel(ctx, r, &measured{scales, make([]float64, len(scales))}, []*job{j}, nil)
			if err != nil {
				return err
			}
			if is != nil {
				row.wrong(Unidentified, LargeErrors, "the columns of %s have the factors, %s to %s, by which it is divided, as AWQ makes them; what else this layer multiplies it with is not known", j.row.Name, number(slices.Min(scales)), number(slices.Max(scales)))
				return nil
			}
		}
	}
	return nil
}

// alone looks for factors of columns behind a norm that has none: all matrices that it is multiplied with have them.
func (s *rescaling) alone(ctx context.Context, x scaling, at map[*job]*Row) error {
	var sum, weight []float64
	for _, name := range x.into {
		j := s.job(name)
		if j == nil || j.local.Coding == nil || !j.local.Coding.Moves && !j.local.Coding.Mixed || at[j].Class != Quantised {
			return nil
		}
		f := factors{}
		if known := s.found[j]; known != nil {
			f.rows = known.rows
		}
		of, _, err := s.measure(ctx, s.r, j.local, view{t: f.of(j.original)})
		if err != nil {
			return err
		}
		if sum == nil {
			sum, weight = make([]float64, len(of.both)), make([]float64, len(of.both))
		}
		for i := range sum {
			if f, v, ok := of.of(i); ok && v > 0 && i < len(of.both) {
				sum[i], weight[i] = sum[i]+f/v, weight[i]+1/v
			}
		}
	}
	apart := apartOf(sum, weight)
	if !(apart > sameFactors) {
		return nil
	}
	for _, name := range x.into {
		at[s.job(name)].wrong(Unidentified, LargeErrors, "its columns, and those of every matrix behind %s, have factors of their own, %s standard errors from each other: AWQ makes such, and divides the norm by them, which is the original's", x.from, number(math.Sqrt(apart)))
	}
	return nil
}

// apartOf is the mean squared difference of factors from their mean, in standard errors; sums and weights are over their variance. It is 0 of too few,
// and where they are nearly alike: in a large matrix the errors that GPTQ moves may show, too.
func apartOf(sum, weight []float64) float64 {
	var all, whole float64
	for i := range sum {
		all, whole = all+sum[i], whole+weight[i]
	}
	mean, apart, n := all/whole, 0.0, 0
	for i := range sum {
		if weight[i] > 0 {
			d := sum[i]/weight[i] - mean
			apart, n = apart+d*d*weight[i], n+1
		}
	}
	if n < minMean || !(apart-float64(n) > leastFactors*leastFactors*whole) {
		return 0
	}
	return apart / float64(n)
}
