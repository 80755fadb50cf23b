package main

import (
	"io/fs"
	"testing"

	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/order"
)

const (
	embedded    = origin.Embedded
	digestLimit = checkpoint.Large
)

// openEmbedded opens the checkpoint that runs when no model is named.
func openEmbedded(t *testing.T) (*checkpoint.Checkpoint, *order.List) {
	t.Helper()
	folder, err := fs.Sub(ondisk.Files(), embedded)
	must(t, err)
	ck, err := checkpoint.OpenFS("fixtures/"+embedded, folder)
	must(t, err)
	config, err := order.ReadConfig(ck.Config())
	must(t, err)
	list, err := order.New(config)
	must(t, err)
	return ck, list
}
