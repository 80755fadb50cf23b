package recorded_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order/recorded"
)

// Choices, scattered writes and systems of equations that cannot be are errors of the file; sizes and settings that no formula has make
// their own entry unknown.
func TestHostileChoices(t *testing.T) {
	for _, c := range []struct {
		f             formula
		fails, unsure string
	}{
		{formula{op: "topk", attr: `"k":8`, in: []string{"3x7"}, out: "3x8 i3x8"}, "the 8 largest of 7", ""},
		{formula{op: "topk", attr: `"k":-1`, in: []string{"3x7"}, out: "3x1 i3x1"}, "the -1 largest of 7", ""},
		{formula{op: "topk", attr: `"k":2`, in: []string{"3x7"}, out: "3x3 i3x3"}, "[3 2] read as [3 3]", ""},
		{formula{op: "topk", attr: `"k":2,"dim":5`, in: []string{"3x7"}, out: "3x2 i3x2"}, "axis 5 of [3 7]", ""},
		{formula{op: "topk", attr: `"k":0.5`, in: []string{"3x7"}, out: "3x2 i3x2"}, "", "its k is 0.5"},
		{formula{op: "sort", attr: `"dim":0`, in: []string{"5000x1"}, out: "5000x1 i5000x1"}, "", "5000 elements a row"},
		{formula{op: "max", attr: `"dim":-1`, in: []string{"3x0"}, out: "3 i3"}, "", "0 elements a row"},
		{formula{op: "scatter", attr: `"dim":1`, in: []string{"2x3", "i2:0,1", "2x2"}, out: "2x3"}, "by indexes of [2] in [2 3]", ""},
		{formula{op: "scatter", attr: `"dim":1`, in: []string{"2x3", "i1x2:0,1", "1x2"}, out: "2x3"}, "", "indexes of a part"},
		{formula{op: "scatter", attr: `"dim":1,"reduce":"add"`, in: []string{"2x3", "i2x2:0,1,1,2", "2x2"}, out: "2x3"}, "", "its setting reduce"},
		{formula{op: "index_add", attr: `"dim":0`, in: []string{"3x4", "i5:2,0,2,2,1", "4x4"}, out: "3x4"}, "repeated to", ""},
		{formula{op: "index_put", in: []string{"3x2", "null", "null", "i2:2,0", "2x2"}, out: "3x2"}, "more indexes than axes", ""},
		{formula{op: "index", in: []string{"2x3x2", "i2:1,0", "null", "i2:1,0"}, out: "2x3"}, "", "do not follow each other"},
		{formula{op: "linalg_solve_triangular", attr: `"upper":false`, in: []string{"3x4", "3x2"}, out: "3x2"}, "", "4 equations"},
		{formula{op: "_scaled_dot_product_flash_attention_for_cpu", in: []string{"1x1x3x4", "1x1x3x5", "1x1x3x4"}, out: "1x1x3x4"}, "do not go together", ""},
		{formula{op: "div", attr: `"rounding_mode":"up"`, in: []string{"i5:7,7,5,1,5", "i1:2"}, out: "i5"}, "", "its setting rounding_mode"},
	} {
		text, _ := c.f.text()
		p, err := recorded.Read(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.f.op, err, text)
		}
		passes, err := p.Entries()
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %s: the error is %v, want %q", c.f.op, c.f.attr, err, c.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.f.op, c.f.attr, err)
			continue
		}
		unsure := false
		for _, e := range passes[0] {
			o, ok := e.Op.(recorded.Unknown)
			unsure = unsure || ok && strings.Contains(o.Why, c.unsure)
		}
		if !unsure {
			t.Errorf("%s %s: no entry says %q", c.f.op, c.f.attr, c.unsure)
		}
	}
}
