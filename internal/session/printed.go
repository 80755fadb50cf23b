package session

import (
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/internal/hint"
)

// nearest fills the local trace in where it is a text of rounded numbers, as [foreign.Nearest] does, and says that nothing can be shown
// to be right by it. Such a text has names of its own, one of which the order has for something else ("norm"), so that it needs a map.
func nearest(s *Settings, local, ref *capture.Trace) (*capture.Trace, []string, error) {
	record := "record the tensors themselves: docs/in-the-wild.md shows how, for llama.cpp"
	switch isLocal, isRef := foreign.Printed(local), foreign.Printed(ref); {
	case isLocal && local == ref:
		return nil, nil, hint.Add(fmt.Errorf("%s: a text of rounded numbers, and not all of them: no operation can be computed from it", local.Path()), record)
	case isRef:
		return nil, nil, hint.Add(fmt.Errorf("%s: a text of rounded numbers, and not all of them, is no reference", ref.Path()), "name it first, and a trace of transformers second")
	case !isLocal:
		return local, nil, nil
	case s.Map == "" && s.table == nil:
		return nil, nil, hint.Add(fmt.Errorf("%s: the text of llama.cpp's eval-callback has names of its own: want --map FILE", local.Path()), mapHint)
	}
	filled, err := foreign.Nearest(local, ref, len(s.Scope.Positions) == 0)
	return filled, []string{"the local trace is a text of rounded numbers, and not all of them: it can show a mismatch, never a match"}, err
}
