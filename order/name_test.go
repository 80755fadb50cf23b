package order_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order"
)

func TestName(t *testing.T) {
	for _, want := range []struct {
		text, label, path, module, role string
		layer, number                   int
	}{
		{"layers.3.self_attn.q_proj", "3", "layers.3", "self_attn.q_proj", "layers.*.self_attn.q_proj", 3, 3},
		{"layers.12.mlp.experts.7.up_proj.weight", "12", "layers.12", "mlp.experts.7.up_proj.weight", "layers.*.mlp.experts.*.up_proj.weight", 12, 12},
		{"layers.*.mlp", "*", "layers.*", "mlp", "layers.*.mlp", -1, -1},
		{"layers.3", "3", "", "layers.3", "layers.*", 3, 3},
		{"layers.3.", "3", "layers.3", "", "layers.*.", 3, 3},
		{"layers.007.mlp", "007", "layers.007", "mlp", "layers.*.mlp", 7, 7},
		{"layers.first.mlp.1", "first", "layers.first", "mlp.1", "layers.first.mlp.*", -1, 1},
		{"layers.-1.mlp", "-1", "layers.-1", "mlp", "layers.-1.mlp", -1, -1},
		{"layers.99999999999999999999.mlp", "99999999999999999999", "layers.99999999999999999999", "mlp", "layers.*.mlp", -1, -1},
		{"layers..mlp", "", "layers.", "mlp", "layers..mlp", -1, -1},
		{"model.layers.3.mlp", "", "", "model.layers.3.mlp", "model.layers.*.mlp", -1, 3},
		{"altup_projections.0", "", "", "altup_projections.0", "altup_projections.*", -1, 0},
		{"h.1.2.3.x", "", "", "h.1.2.3.x", "h.*.2.*.x", -1, 1},
		{"0.a", "", "", "0.a", "*.a", -1, 0},
		{"layers", "", "", "layers", "layers", -1, -1},
		{"logits", "", "", "logits", "logits", -1, -1},
		{"", "", "", "", "", -1, -1},
	} {
		n := order.NameOf(want.text)
		got := want
		got.text, got.label, got.path, got.module, got.role = n.String(), n.Label(), n.Path(), n.Module(), n.Role()
		got.layer, got.number = n.Layer(), n.Number()
		if kind := strings.Replace(want.role, ".2.", ".*.", 1); n.Kind() != kind {
			t.Errorf("the kind of %q is %q, want %q", want.text, n.Kind(), kind)
		}
		if got != want || n.Within() != (want.path != "") {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if order.NameOf("layers.3.mlp") != order.InLayer(3, "mlp") || order.InLayer(3, "mlp") != order.NameIn("3", "mlp") {
		t.Error("one name is not equal to itself")
	}
	if got := order.LayerPath(3); got != order.InLayer(3, "mlp").Path() {
		t.Errorf("the path of a layer is %q", got)
	}
}

func TestNameBeside(t *testing.T) {
	for _, at := range []struct{ name, own, want string }{
		{"layers.0.mlp", "layers.3.self_attn", "layers.3.mlp"},
		{"layers.0.mlp", order.AnyLayer, "layers.*.mlp"},
		{"layers.0.mlp", "logits", "layers.0.mlp"},
		{"layers.0.mlp", "layers.3", "layers.0.mlp"},
		{"logits", "layers.3.mlp", "logits"},
		{"layers.0", "layers.3.mlp", "layers.0"},
	} {
		if got := order.NameOf(at.name).Beside(order.NameOf(at.own)); got != order.NameOf(at.want) {
			t.Errorf("%q beside %q is %q, want %q", at.name, at.own, got, at.want)
		}
	}
	for _, own := range []string{"layers.4.mlp", "layers.3", "logits", "model.layers.3.mlp", order.AnyLayer} {
		if order.NameOf("layers.3.norm").SameLayer(order.NameOf(own)) || order.NameOf(own).SameLayer(order.NameOf("layers.3.norm")) {
			t.Errorf("layers.3.norm is in the layer of %q", own)
		}
	}
	if !order.NameOf("layers.3.norm").SameLayer(order.NameOf("layers.3.mlp")) {
		t.Error("a layer is not the same as itself")
	}
	for of, want := range map[string]string{"layers.3.mlp": "layers.3.norm", "layers.3": "layers.3.norm", "logits": "norm"} {
		if got := order.NameOf(of).Here("norm"); got != order.NameOf(want) {
			t.Errorf("the norm of the layer of %q is %q", of, got)
		}
	}
}

func TestNameNext(t *testing.T) {
	for _, at := range []struct {
		name string
		by   int
		want string
	}{
		{"layers.3.experts.5", -1, "layers.2.experts.5"},
		{"altup_projections.0", 1, "altup_projections.1"},
		{"layers.0.mlp", -1, ""},
		{"layers.99999999999999999999.1", 1, ""},
		{"logits", 1, ""},
	} {
		got, ok := order.NameOf(at.name).Next(at.by)
		if ok != (at.want != "") || got.String() != at.want {
			t.Errorf("%q, %d on, is %q, %t", at.name, at.by, got, ok)
		}
	}
}

// FuzzNameRole compares the role with that of the expression that says what a number is.
func FuzzNameRole(f *testing.F) {
	numbers := regexp.MustCompile(`(^|\.)\d+(\.|$)`)
	for _, text := range []string{"layers.3.mlp", "1.2.3.4", "a.1..2", "..", "a1.1b.11", "٣.3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := order.NameOf(text)
		if want := numbers.ReplaceAllString(text, "${1}*${2}"); n.Role() != want {
			t.Errorf("the role of %q is %q, want %q", text, n.Role(), want)
		}
		if n.Within() && order.NameIn(n.Label(), n.Module()) != n {
			t.Errorf("%q is not made of %q and %q", n, n.Label(), n.Module())
		}
	})
}
