package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
)

// counted is a tensor whose elements are their own numbers.
func counted(t testing.TB, shape ...int) *capture.Trace {
	n, _ := hooks.Elements(shape)
	values := make([]float64, max(n, 1))
	for i := range values {
		values[i] = float64(i)
	}
	return open(t, file(tensor("w", hooks.F32, shape, values...)))
}

// testdata/slices.txt is what Python takes of lists, written by slices.py beside it.
func TestSlicesAreThoseOfPython(t *testing.T) {
	text, err := os.ReadFile("testdata/slices.txt")
	if err != nil {
		t.Fatal(err)
	}
	axes := map[string]*capture.Trace{"0": counted(t, 0), "1": counted(t, 1), "5": counted(t, 5)}
	cases := 0
	for line := range strings.Lines(string(text)) {
		cases++
		fields := strings.Fields(line)
		r, err := inspect.Run(context.Background(), axes[fields[0]], inspect.Options{Name: "w", Slice: fields[1]})
		got := []string{"error"}
		if err == nil {
			got = nil
			for _, v := range r.Tensors[0].Values.Values {
				got = append(got, fmt.Sprint(v))
			}
		}
		if !slices.Equal(got, fields[2:]) {
			t.Errorf("%s of %s: %v, Python %v (%v)", fields[1], fields[0], got, fields[2:], err)
		}
	}
	if cases < 3000 {
		t.Errorf("%d cases", cases)
	}
}

func TestSlicesOfSeveralAxes(t *testing.T) {
	tr := counted(t, 2, 3, 4)
	for text, want := range map[string]struct {
		indexes [][]int
		values  []measure.Number
	}{
		"1,2,3":       {[][]int{}, []measure.Number{23}},
		"0,:,1":       {[][]int{{0, 1, 2}}, []measure.Number{1, 5, 9}},
		"...,-1":      {[][]int{{0, 1}, {0, 1, 2}}, []measure.Number{3, 7, 11, 15, 19, 23}},
		"1,...":       {[][]int{{0, 1, 2}, {0, 1, 2, 3}}, []measure.Number{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
		"1, ... ,0,0": {[][]int{}, []measure.Number{12}},
		"-1,::-2":     {[][]int{{2, 0}, {0, 1, 2, 3}}, []measure.Number{20, 21, 22, 23, 12, 13, 14, 15}},
		"0,0,1:3":     {[][]int{{1, 2}}, []measure.Number{1, 2}},
		"0,0,::3":     {[][]int{{0, 3}}, []measure.Number{0, 3}},
		"0,5:":        {[][]int{{}, {0, 1, 2, 3}}, []measure.Number{}},
	} {
		v := one(t, tr, inspect.Options{Name: "w", Slice: text}).Values
		if d := cmp.Diff(want.indexes, v.Indexes); d != "" {
			t.Errorf("%s: indexes\n%s", text, d)
		}
		if d := cmp.Diff(want.values, v.Values); d != "" {
			t.Errorf("%s: values\n%s", text, d)
		}
		if len(v.Axes) != len(v.Indexes) || v.Stats.Elements != int64(len(v.Values)) {
			t.Errorf("%s: axes %q, statistics of %d", text, v.Axes, v.Stats.Elements)
		}
	}
}

func TestSlicesThatAreNone(t *testing.T) {
	tr := counted(t, 300, 300)
	for text, want := range map[string]string{
		"0,0,0":                      "3 indexes, and the tensor 2 axes",
		"300":                        "axis 0, of size 300: index 300",
		"0,-301":                     "axis 1, of size 300: index -301",
		"x":                          "neither an index nor start:stop:step",
		"1:2:3:4":                    "more than start:stop:step",
		",2":                         "neither an index",
		"...,...":                    "twice",
		"::0":                        "a step of 0",
		":":                          "more than 65536 values",
		"99999999999999999999":       "neither an index",
		":9223372036854775808":       "neither an index",
		"0:-9223372036854775808:1:1": "more than start:stop:step",
	} {
		_, err := inspect.Run(context.Background(), tr, inspect.Options{Name: "w", Slice: text})
		var option *inspect.OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), want) || !strings.Contains(option.Hint(), "[300 300]") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A tensor without elements can have axes of any size, of which nothing is held.
func TestSliceOfAnEmptyTensorWithAHugeAxis(t *testing.T) {
	tr := open(t, file(tensor("w", hooks.F32, []int{0, 1 << 40, 1 << 19}, 0)))
	if _, err := inspect.Run(context.Background(), tr, inspect.Options{Name: "w", Slice: ":,:,:"}); !errors.As(err, new(*inspect.OptionError)) {
		t.Error(err)
	}
	if x := one(t, tr, inspect.Options{Name: "w", Slice: ":,-1,:2"}); len(x.Values.Values) != 0 || x.Channels != nil {
		t.Errorf("%+v", x)
	}
}

// Whatever is typed, values are those of the tensor or there is an error.
func FuzzSlice(f *testing.F) {
	tr := counted(f, 3, 5, 2)
	for _, s := range []string{"0,:8,::-2", "...", "-1:-9223372036854775808:9223372036854775807", "2:9223372036854775807,-9:", "::-9223372036854775808"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := inspect.Run(context.Background(), tr, inspect.Options{Name: "w", Slice: text})
		if err != nil {
			return
		}
		v, count := r.Tensors[0].Values, 1
		if v == nil {
			if text != "" {
				t.Fatalf("%q: nothing", text)
			}
			return
		}
		for i, indexes := range v.Indexes {
			count *= len(indexes)
			for _, at := range indexes {
				if at < 0 || at >= 5 {
					t.Fatalf("%q: axis %d has %d", text, i, at)
				}
			}
		}
		if len(v.Values) != count {
			t.Fatalf("%q: %d values, indexes of %d", text, len(v.Values), count)
		}
	})
}
