package session

import (
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
)

// nearest fills in the local trace if it was parsed from printed, rounded numbers ([foreign.Nearest]), and reports
// that such a trace cannot prove any operation right. The printed names collide with names of the order ("norm"),
// so a map is required.
func nearest(s *settings.Settings, local, ref *capture.Trace) (*capture.Trace, []string, error) {
	record := "record the tensors themselves: docs/results/in-the-wild.md shows how, for llama.cpp"
	switch isLocal, isRef := foreign.Printed(local), foreign.Printed(ref); {
	case isLocal && local == ref:
		return nil, nil, hint.Add(fmt.Errorf("%s: a text of rounded numbers, with some left out: no operation can be computed from it", local.Path()), record)
	case isRef:
		return nil, nil, hint.Add(fmt.Errorf("%s: a text of rounded numbers, with some left out, cannot be the reference", ref.Path()), "name it first, and a trace of transformers second")
	case !isLocal:
		return local, nil, nil
	case s.Map == "" && s.Table == nil:
		return nil, nil, hint.Add(fmt.Errorf("%s: the text of llama.cpp's eval-callback has names of its own: want --map FILE", local.Path()), settings.MapHint)
	}
	filled, err := foreign.Nearest(local, ref, len(s.Scope.Positions) == 0)
	return filled, []string{"your port's trace is a text of rounded numbers, with some left out: it can show a mismatch, never a match"}, err
}
