package edit_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// An edit is the same after it was written and read, and other texts are errors.
func TestEditText(t *testing.T) {
	for _, d := range []edit.Edit{
		{Class: edit.LeftOut, At: []edit.Place{{Step: math.MaxUint64, Arg: -1}}, From: edit.Place{Step: 3, Arg: 1}},
		{Class: edit.Constant, At: []edit.Place{{Step: 7, Arg: -1}, {Step: 8, Arg: 2}}, Value: 0.1},
		{Class: edit.Constant, At: []edit.Place{{Step: 7}}, Value: math.Inf(-1)},
		{Class: edit.Mapped, At: []edit.Place{{Step: 1, Arg: edit.Returned}}, Map: edit.Map{Kind: edit.Weave, Axis: 2, Other: 1, By: -4, N: 8}, Back: true, Prim: program.Max},
	} {
		again, err := edit.ParseEdit(d.Text())
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Errorf("%+v: %+v, %v", d, again, err)
		}
	}
	for _, text := range []string{"", ";", "0;0;0;0,0,0,0,0;false;", "0;0;0;0,0,0,0,0;false;1:0,", "200;0;0;0,0,0,0,0;false;1:0,1:0,", "0;0;0;0,0,0,0,0;false;1:0,x"} {
		if d, err := edit.ParseEdit(text); err == nil {
			t.Errorf("%q is %+v", text, d)
		}
	}
}
