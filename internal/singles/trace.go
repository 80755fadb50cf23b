package singles

import (
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/ordertest"
)

// CertifyTrace certifies the entries of a trace for which isolation is possible: all, or the entries with a key for which only returns true. The
// certificates stand by key.
func CertifyTrace(t testing.TB, tr *capture.Trace, c ordertest.Case, d hooks.DType, only func(string) bool) map[string]*isolate.Certificate {
	t.Helper()
	i, err := compare.NewIsolator(tr, c.List, reference.Weights(c.Checkpoint, d), isolate.Options{DType: d})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*isolate.Certificate{}
	for _, r := range tr.Records() {
		if c.List.Index(r.Name) < 0 || only != nil && !only(capture.Key(r.Pass, r.Name, 0)) {
			continue
		}
		z, err := i.Certify(t.Context(), r.Name, r.Pass)
		if err != nil {
			continue
		}
		all[capture.Key(r.Pass, r.Name, 0)] = z
	}
	return all
}
