package capture

import (
	"fmt"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/safetensors"
)

// WrittenAgain is the hint for a trace that another program loaded and saved together with the metadata of the run.
const WrittenAgain = "compare the file that the run wrote; to compare numbers that were converted, leave the metadata out, save_file(tensors, FILE), and name the model with --model DIR"

// byName describes the order of tensors for which [Trace.SortedByName] holds.
const byName = "sorted by dtype and name, as the safetensors library writes them, and not in the order of execution, as its metadata says"

// SortedByName reports whether the tensors are in the order in which the safetensors library writes them: by dtype, and by name within a dtype. The words
// describe this order.
func (t *Trace) SortedByName() (words string, is bool) {
	return byName, sortedByName(len(t.records), func(i int) (hooks.DType, string) { return t.records[i].DType, t.records[i].Key })
}

// writtenAgain is the error of tensors that are not in the order of execution: err, unless their order is that of the safetensors library.
func writtenAgain(tensors []safetensors.Tensor, err error) error {
	if !sortedByName(len(tensors), func(i int) (hooks.DType, string) { return tensors[i].DType, tensors[i].Name }) {
		return err
	}
	return hint.Add(fmt.Errorf("it was written again by another program: its %d tensors are %s", len(tensors), byName), WrittenAgain)
}

func sortedByName(n int, at func(i int) (hooks.DType, string)) bool {
	ended := map[hooks.DType]bool{}
	for i := 1; i < n; i++ {
		before, last := at(i - 1)
		d, name := at(i)
		if d != before {
			ended[before] = true
		}
		if ended[d] || d == before && last > name {
			return false
		}
	}
	return n > 1
}
