package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
	"github.com/tracediff/tracediff/order"
)

// The gate of a port asks for the names that the port dumped at the last capture. So the first gate of a port that matched passes, and a name that disappears later
// fails.

// shown returns patterns for the tensor names in the port's last dump, and the capture level with these names. The
// level is 0 if the local side is not a port, or if the model has no order. The error comes from opening the trace,
// or from a map without a fit.
func shown(s *settings.Settings, dir string) (patterns []string, level int, err error) {
	if s.Local.Kind != settings.KindExec && s.Local.Kind != settings.KindFile || s.Program != "" {
		return nil, 0, nil
	}
	list, err := orders.OfModel(s.Model, s.Order)
	if err != nil {
		return nil, 0, nil
	}
	file := tracefolder.TracePath(dir, "local")
	if s.Local.Kind == settings.KindFile {
		file = s.Local.Text
	}
	t, err := foreign.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer t.Close()
	fitted, err := fit(s, t, list)
	if err != nil {
		return nil, 0, err
	}
	patterns, level = patternsOf(fitted.Trace, list)
	return patterns, level, nil
}

// patternsOf are the names of a trace that an order has, with * for the number of a layer where all layers have the name.
func patternsOf(t *capture.Trace, list *order.List) (patterns []string, level int) {
	has := map[string]bool{}
	for _, r := range t.Records() {
		has[r.Name] = true
	}
	lacks := map[string]bool{}
	pattern := func(e *order.Entry) string {
		if e.Layer < 0 {
			return e.Name
		}
		return strings.Replace(e.Name, "."+strconv.Itoa(e.Layer)+".", ".*.", 1)
	}
	for i := range list.Entries {
		if e := &list.Entries[i]; !has[e.Name] {
			lacks[pattern(e)] = true
		}
	}
	for i := range list.Entries {
		e := &list.Entries[i]
		if !has[e.Name] {
			continue
		}
		level = max(level, e.Level)
		name := pattern(e)
		if lacks[name] {
			name = e.Name
		}
		if !slices.Contains(patterns, name) {
			patterns = append(patterns, name)
		}
	}
	return patterns, level
}

// mapText is the map of the last capture as a table of tracediff.toml; empty without a map.
func mapText(s *settings.Settings) (string, error) {
	if s.Map == "" {
		return "", nil
	}
	text, _, err := files.ReadSoon(s.Map, mapping.MaxSize)
	if err != nil {
		return "", fmt.Errorf("the map of the last capture: %w", err)
	}
	var tables map[string]any
	if err := toml.Unmarshal(text, &tables); err != nil {
		return "", fmt.Errorf("%s: %w", s.Map, err)
	}
	made, err := toml.Marshal(map[string]any{"map": tables})
	return string(made), err
}
