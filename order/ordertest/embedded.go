package ordertest

import (
	"io/fs"
	"testing"

	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
)

// Embedded opens a checkpoint that is embedded in the program, by the name of its folder in fixtures, with the order of its model. An error ends the test.
func Embedded(t testing.TB, model string) (*checkpoint.Checkpoint, *order.List) {
	t.Helper()
	files, err := fs.Sub(ondisk.Files(), model)
	if err != nil {
		t.Fatal(err)
	}
	ck, err := checkpoint.OpenFS(model, files)
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ReadConfig(ck.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return ck, list
}
