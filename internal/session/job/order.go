package job

import (
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/order"
)

// Order is the order of a run, and what of it is recorded.
type Order struct {
	List    *order.List     // the whole; nil of an undescribed model until its program is known
	Record  *order.List     // the names to record: List, or those of a person's file
	Program *orders.Program // whose list is List; nil for an order that describes the family

	streamed             []byte // the names to record, where they came from a stream
	digest, recordDigest string // of List and Record
}

// openOrder finds the order of the model, and what of it is recorded.
func (j *Job) openOrder() (err error) {
	if j.Model.Config, err = order.ReadConfig(j.Model.Checkpoint.Config()); err == nil {
		j.Order.List, err = order.New(j.Model.Config)
	}
	switch {
	case order.Undescribed(err):
		err = j.openUndescribed()
	case err != nil:
		err = fmt.Errorf("%s: %w", j.Model.Checkpoint.Name(), err)
	default:
		err = j.openDescribed()
	}
	if err != nil || j.Settings.Program == "" {
		return err
	}
	p, err := orders.OpenProgram(j.Settings.Program)
	if err != nil {
		return err
	}
	return j.Adopt(p)
}

// openDescribed opens a model whose family an order describes.
func (j *Job) openDescribed() (err error) {
	j.Model.Canonical = j.Model.Config.Canonical()
	if err = gemma.CheckWeights(j.Model.Checkpoint, j.Order.List); err != nil {
		return err
	}
	if j.Order.Record, err = j.recordList(); err != nil {
		return err
	}
	if j.Order.digest, err = reference.OrderDigest(j.Order.List); err != nil {
		return err
	}
	if j.Order.recordDigest, err = reference.OrderDigest(j.Order.Record); err != nil {
		return err
	}
	if err = orders.CheckScope(j.Settings.Scope, j.Order.Record); err != nil {
		return err
	}
	return gemma.CheckSelected(j.Order.List, j.Settings.Scope.Select(j.Order.Record))
}

// recordedOrder is what the key of a reference has in the place of the order: whatever was recorded.
const recordedOrder = "recorded"

// openUndescribed opens a model without an order. Its order is the program recorded with the reference. Until there
// is a recording, the job has no list, and the names are unknown.
func (j *Job) openUndescribed() error {
	general, err := order.ReadGeneral(j.Model.Checkpoint.Config())
	if err != nil {
		return fmt.Errorf("%s: %w", j.Model.Checkpoint.Name(), err)
	}
	j.Model.Config, j.Model.Canonical, j.Model.Undescribed = &general.Config, general.File, true
	if j.Settings.Order != "" {
		return hint.Add(fmt.Errorf("--order does not apply to a model of type %q: its order is its recorded program", general.ModelType), "leave --order out; --tensors and --layers narrow a comparison")
	}
	j.Order.digest, j.Order.recordDigest = recordedOrder, recordedOrder
	return nil
}

// Adopt makes a recorded program the order of the job.
func (j *Job) Adopt(p *orders.Program) error {
	j.Order.Program, j.Order.List, j.Order.Record = p, p.List, p.List.Named()
	return orders.CheckScope(j.Settings.Scope, j.Order.Record)
}

// UseProgram makes the program from --program, or the program recorded with a reference of these passes, the order
// of the job.
func (j *Job) UseProgram(t *capture.Trace, passes [][]int) error {
	if j.Order.List != nil {
		return nil
	}
	p, err := orders.ProgramBeside(t)
	if err != nil {
		return err
	}
	if p == nil {
		return hint.Add(fmt.Errorf("%s has no recorded program next to it, and no order describes a model of type %q", t.Path(), j.Model.Config.ModelType),
			"--program FILE names one; python -m tracediff.hf without --order, and capture --reference hf, record one")
	}
	if p, err = p.ForPasses(passes, 0, ""); err != nil {
		return err
	}
	return j.Adopt(p)
}

// Described is the order of a described model, also where a recorded program stands in its place.
func (j *Job) Described() *order.List {
	if j.Order.Program == nil {
		return j.Order.List
	}
	list, err := order.New(j.Model.Config)
	if err != nil { // it was opened by it
		panic(err)
	}
	return list
}

// recordList is the order, or the user's list with what the order knows of its names.
func (j *Job) recordList() (*order.List, error) {
	if j.Settings.Order == "" {
		return j.Order.List, nil
	}
	names, text, err := orders.ReadNames(j.Settings.Order)
	if err != nil {
		return nil, err
	}
	j.Order.streamed = text
	return j.Order.List.Pick(names), nil
}
