package capture

import (
	"fmt"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// Value reads the first firing of a name in a pass as float64, which holds every float and every integer below 2^53
// exactly. The error is that of reading, or of a tensor that is not there.
func (t *Trace) Value(pass int, name string) (program.Value, error) {
	r, ok := t.Lookup(pass, name)
	if !ok {
		return program.Value{}, fmt.Errorf("%s has no tensor %s", t.path, quote(Key(pass, name, 0)))
	}
	x, err := t.Read(r)
	if err != nil {
		return program.Value{}, err
	}
	v := program.Value{Shape: x.Shape, Data: make([]float64, len(x.Data)/x.DType.Size())}
	return v, floats.Decode(v.Data, x.DType, x.Data)
}
