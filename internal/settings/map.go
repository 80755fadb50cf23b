package settings

import (
	"fmt"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
)

const MapHint = "tracediff map LOCAL REFERENCE proposes one; docs/ports.md explains every word of it"

// ReadMap reads the map of the settings: the file of --map, or the table of tracediff.toml. It returns nil without
// a map.
func (s *Settings) ReadMap() (*mapping.Map, error) {
	if s.Map == "" {
		return s.Table, nil
	}
	text, _, err := files.ReadSoon(s.Map, mapping.MaxSize)
	if err != nil {
		return nil, hint.Add(fmt.Errorf("reading the map: %w", err), MapHint)
	}
	m, err := mapping.Parse(s.Map, text)
	return m, hint.Default(err, MapHint)
}
