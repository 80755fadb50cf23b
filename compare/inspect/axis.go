package inspect

import (
	"fmt"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// Axis has the statistics of each index of one axis, over all elements of the index.
type Axis struct {
	Axis   string  `json:"axis"` // its role in words
	Number int     `json:"number"`
	Slices []Stats `json:"slices"` // by index
}

// maxIndexes bounds the listed indexes of an axis: more heads than any model has, and 2 MiB of buffers. A single channel is shown by a slice.
const maxIndexes = 1024

// waiting is the number of elements of an index that are collected before they are summed. The elements of one head lie in short runs, too
// short for sums by lanes.
const waiting = 256

// byAxis adds up the elements of each index of an axis.
type byAxis struct {
	Axis
	stride, size int
	tallies      []tally
	buffers      [][]float64
	mask         float64
}

func newByAxis(s source, number int, role string) *byAxis {
	b := &byAxis{Axis: Axis{Axis: role, Number: number}, stride: measure.Elements(s.shape[number+1:]), size: s.shape[number], mask: s.mask}
	b.tallies, b.buffers = make([]tally, b.size), make([][]float64, b.size)
	return b
}

// add takes in the strip that comes next.
func (b *byAxis) add(at int64, x []float64) {
	for len(x) > 0 {
		index := int(at / int64(b.stride) % int64(b.size))
		n := min(b.stride-int(at%int64(b.stride)), len(x))
		b.collect(index, x[:n])
		x, at = x[n:], at+int64(n)
	}
}

func (b *byAxis) collect(index int, x []float64) {
	for len(x) > 0 {
		buffer := b.buffers[index]
		if buffer == nil {
			buffer = make([]float64, 0, waiting)
		}
		n := min(waiting-len(buffer), len(x))
		b.buffers[index] = append(buffer, x[:n]...)
		x = x[n:]
		if len(b.buffers[index]) == waiting {
			b.flush(index)
		}
	}
}

func (b *byAxis) flush(index int) {
	b.tallies[index].add(b.buffers[index], b.mask)
	b.buffers[index] = b.buffers[index][:0]
}

func (b *byAxis) result() Axis {
	for i := range b.tallies {
		b.flush(i)
		b.Slices = append(b.Slices, b.tallies[i].stats())
	}
	return b.Axis
}

// axesWanted are the axes with listed statistics: the requested axis, else heads and streams, which the statistics of the whole do not show.
func (x *looker) axesWanted() ([]int, error) {
	rank := len(x.rec.Shape)
	if x.o.Axis != nil {
		number := *x.o.Axis
		if number < 0 {
			number += rank
		}
		switch {
		case number < 0 || number >= rank:
			return nil, optionError(fmt.Errorf("--axis %d: %q has %d axes", *x.o.Axis, short(x.rec.Key), rank),
				"the shape is %v; axes count from 0, from the last as -1", x.rec.Shape)
		case x.rec.Shape[number] > maxIndexes:
			return nil, optionError(fmt.Errorf("--axis %d has %d indexes, and statistics of at most %d are listed", *x.o.Axis, x.rec.Shape[number], maxIndexes),
				"--slice shows the values of some of them, as in --slice ':,:8'")
		}
		return []int{number}, nil
	}
	var list []int
	for i, size := range x.rec.Shape {
		if role := x.role(i); (role == order.AxisHead || role == order.AxisStream) && size > 1 && size <= maxIndexes {
			list = append(list, i)
		}
	}
	return list, nil
}
