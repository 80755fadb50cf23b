package quant_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/internal/quant"
)

// filled is a tensor of n ordinary values in a format.
func filled(b quant.Block, n int) (*quant.Tensor, []float32) {
	r := rand.New(rand.NewPCG(1, 1))
	raw := make([]byte, n/b.Elements()*b.Bytes())
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	for i := 1; i < len(raw); i += 2 {
		raw[i] &= 0xbf // no scale is infinite
	}
	q := b.Tensor(b.String(), []int{n}, bytes.NewReader(raw), 0)
	x := make([]float32, n)
	if err := q.Reader().Values(x, 0); err != nil {
		panic(err)
	}
	return q, x
}

// Megabytes are those of the file: what has to be read.
func BenchmarkValues(b *testing.B) {
	const n = 1 << 20
	for _, f := range all {
		b.Run(f.String(), func(b *testing.B) {
			q, x := filled(f, n)
			r := q.Reader()
			b.SetBytes(int64(n / f.Elements() * f.Bytes()))
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Values(x, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Melements/s")
		})
	}
}

// What judging costs, with the reading of codes.
func BenchmarkErrors(b *testing.B) {
	const n = 1 << 20
	for _, f := range all {
		b.Run(f.String(), func(b *testing.B) {
			q, values := filled(f, n)
			r, x := q.Reader(), wide(values)
			var c quant.Codes
			b.SetBytes(int64(n / f.Elements() * f.Bytes()))
			b.ReportAllocs()
			for b.Loop() {
				const batch = 4096
				for at := 0; at < n; at += batch {
					if err := r.Codes(&c, int64(at), batch); err != nil {
						b.Fatal(err)
					}
					for g := range c.Step {
						c.Errors(g, x[at+g*c.Group:at+(g+1)*c.Group])
					}
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Melements/s")
		})
	}
}

// What the usual writer's choice costs.
func BenchmarkUsual(b *testing.B) {
	const n = 1 << 14
	for _, f := range all {
		b.Run(f.String(), func(b *testing.B) {
			q, x := filled(f, n)
			var c quant.Codes
			b.ReportAllocs()
			for b.Loop() {
				q.Usual(&c, x)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Melements/s")
		})
	}
}
