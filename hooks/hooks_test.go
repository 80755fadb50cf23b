package hooks_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
)

// bytesTensor is a one-axis U8 tensor over data.
func bytesTensor(data ...byte) hooks.Tensor {
	return hooks.Tensor{DType: hooks.U8, Shape: []int{len(data)}, Data: data}
}

func TestPointsAreNilWhereNobodyLooks(t *testing.T) {
	var none *hooks.Registry
	if none.Point("norm") != nil {
		t.Error("a nil registry resolved a point")
	}
	none.BeginPass(3)
	if err := none.Err(); err != nil {
		t.Error(err)
	}
	var r hooks.Registry
	if err := r.Observe("layers.1.*", func(hooks.Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
	p := r.Point("layers.2.out")
	if p != nil {
		t.Error("a name that no pattern matches has a point")
	}
	if err := p.Fire(hooks.Tensor{}); err != nil {
		t.Errorf("firing a nil point: %v", err)
	}
	if p.Replaces() {
		t.Error("a nil point replaces")
	}
}

// Observers see name and pass, after the replacers, in the order of registration, whether they were registered by name
// or by pattern.
func TestFireReplacesThenObserves(t *testing.T) {
	var r hooks.Registry
	var seen []string
	observe := func(tag string) hooks.Observer {
		return func(e hooks.Event) error {
			seen = append(seen, tag, e.Name, string(e.Tensor.Data))
			if e.Pass != 2 {
				t.Errorf("pass %d, want 2", e.Pass)
			}
			return nil
		}
	}
	must(t, r.Observe("*", observe("first")))
	must(t, r.Observe("norm", observe("second")))
	must(t, r.Observe("n?rm", observe("third")))
	must(t, r.Replace("norm", func(hooks.Event) (hooks.Tensor, error) { return bytesTensor('x', 'y'), nil }))
	must(t, r.Replace("norm", func(e hooks.Event) (hooks.Tensor, error) {
		if string(e.Tensor.Data) != "xy" {
			t.Errorf("the second replacer saw %q", e.Tensor.Data)
		}
		return hooks.Tensor{}, nil // leave it
	}))
	p := r.Point("norm")
	r.BeginPass(2)
	live := bytesTensor('a', 'b')
	must(t, p.Fire(live))
	if string(live.Data) != "xy" {
		t.Errorf("the live buffer holds %q, want xy", live.Data)
	}
	want := []string{"first", "norm", "xy", "second", "norm", "xy", "third", "norm", "xy"}
	if !slices.Equal(seen, want) {
		t.Errorf("observed %q, want %q", seen, want)
	}
	if !p.Replaces() {
		t.Error("the point does not say that it replaces")
	}
}

func TestReplacementMustFit(t *testing.T) {
	for name, with := range map[string]hooks.Tensor{
		"shape": bytesTensor(1, 2, 3),
		"rank":  {DType: hooks.U8, Shape: []int{2, 1}, Data: []byte{1, 2}},
		"dtype": {DType: hooks.I8, Shape: []int{2}, Data: []byte{1, 2}},
		"data":  {DType: hooks.U8, Shape: []int{2}, Data: []byte{1}},
	} {
		t.Run(name, func(t *testing.T) {
			var r hooks.Registry
			must(t, r.Replace("x", func(hooks.Event) (hooks.Tensor, error) { return with, nil }))
			live := bytesTensor(7, 8)
			if err := r.Point("x").Fire(live); err == nil {
				t.Error("a replacement that does not fit was taken")
			}
			if live.Data[0] != 7 || live.Data[1] != 8 {
				t.Errorf("the live buffer was changed to %v", live.Data)
			}
		})
	}
}

func TestErrorsStick(t *testing.T) {
	var r hooks.Registry
	disk := errors.New("disk full")
	calls := 0
	must(t, r.Observe("*", func(hooks.Event) error { calls++; return disk }))
	a, b := r.Point("a"), r.Point("b")
	if err := a.Fire(bytesTensor(1)); !errors.Is(err, disk) {
		t.Errorf("got %v", err)
	}
	if err := b.Fire(bytesTensor(1)); !errors.Is(err, disk) {
		t.Errorf("a later point returned %v, want the first error", err)
	}
	if calls != 1 || !errors.Is(r.Err(), disk) {
		t.Errorf("%d calls, Err %v", calls, r.Err())
	}
}

func TestMalformedTensorIsAnError(t *testing.T) {
	var r hooks.Registry
	must(t, r.Observe("*", func(hooks.Event) error { t.Error("observed"); return nil }))
	if err := r.Point("x").Fire(hooks.Tensor{DType: hooks.F32, Shape: []int{2}, Data: make([]byte, 7)}); err == nil {
		t.Error("no error for 7 bytes of two float32")
	}
}

func TestRegisteringLateOrBadly(t *testing.T) {
	var r hooks.Registry
	if err := r.Observe("[", func(hooks.Event) error { return nil }); err == nil {
		t.Error("a malformed pattern was taken")
	}
	r.Point("x")
	if err := r.Observe("x", func(hooks.Event) error { return nil }); err == nil {
		t.Error("an observer was registered after the points were resolved: it would never be called")
	}
	if err := r.Replace("x", func(hooks.Event) (hooks.Tensor, error) { return hooks.Tensor{}, nil }); err == nil {
		t.Error("a replacer was registered after the points were resolved")
	}
}

func TestElements(t *testing.T) {
	for _, c := range []struct {
		shape []int
		n     int
		ok    bool
	}{
		{nil, 1, true},
		{[]int{2, 3}, 6, true},
		{[]int{5, 0, 7}, 0, true},
		{[]int{-1}, 0, false},
		{[]int{0, -1}, 0, false},
		{[]int{1 << 32, 1 << 32}, 0, false},
		{[]int{1 << 30, 1 << 30}, 0, false},
		{[]int{1 << 59}, 1 << 59, true},
	} {
		if n, ok := hooks.Elements(c.shape); n != c.n || ok != c.ok {
			t.Errorf("Elements(%v) = %d, %v; want %d, %v", c.shape, n, ok, c.n, c.ok)
		}
	}
}

func TestDTypeNames(t *testing.T) {
	for d := hooks.F64; d.Valid(); d++ {
		for _, s := range []string{d.String(), d.Safetensors()} {
			if got, err := hooks.ParseDType(s); err != nil || got != d {
				t.Errorf("ParseDType(%q) = %v, %v; want %v", s, got, err, d)
			}
		}
		if d.Size() < 1 || d.Size() > 8 {
			t.Errorf("%s takes %d bytes", d, d.Size())
		}
	}
	for _, s := range []string{"", "f32", "Float32", "F4"} {
		if _, err := hooks.ParseDType(s); err == nil {
			t.Errorf("ParseDType(%q) gave no error", s)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The cost of a point that nobody looks at.
func BenchmarkFireNil(b *testing.B) {
	var r hooks.Registry
	p := r.Point("layers.0.out")
	tensor := bytesTensor(1, 2, 3, 4)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Fire(tensor); err != nil {
			b.Fatal(err)
		}
	}
}
