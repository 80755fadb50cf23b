package hooks_test

import (
	"fmt"

	"github.com/tracediff/tracediff/hooks"
)

// A model asks for its points once, and fires them in the forward pass. A name that nobody observes has a nil point, which
// costs a comparison.
func ExampleRegistry() {
	reg := &hooks.Registry{}
	err := reg.Observe("layers.*.mlp", func(e hooks.Event) error {
		fmt.Println(e.Pass, e.Name, e.Tensor.Shape)
		return nil
	})
	if err != nil {
		panic(err)
	}
	mlp, norm := reg.Point("layers.0.mlp"), reg.Point("norm")

	reg.BeginPass(0)
	for _, p := range []*hooks.Point{mlp, norm} {
		if err := p.Fire(hooks.Tensor{DType: hooks.F32, Shape: []int{1, 2}, Data: make([]byte, 8)}); err != nil {
			panic(err)
		}
	}
	fmt.Println(norm == nil)
	// Output:
	// 0 layers.0.mlp [1 2]
	// true
}
