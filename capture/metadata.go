package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/plain"
)

// version is the value of tracediff.version that this package writes and reads. The version changes when an older
// reader would misunderstand a newer file.
const version = "1"

// maxPasses bounds the forward calls of a trace: no context has as many tokens.
const maxPasses = 1 << 16

// maxFused bounds the modules with fused attention: no model has as many layers.
const maxFused = 1 << 12

// The keys of the metadata that are not a field of the manifest.
const (
	keyPrefix   = "tracediff."
	versionKey  = keyPrefix + "version"
	statusKey   = keyPrefix + "status"
	sequenceKey = keyPrefix + "sequence"
	execution   = "execution"
)

// field ties one key of the metadata to one field of the manifest, both ways. An empty text is undeclared.
type field struct {
	key    string
	encode func(Manifest) (string, error)
	decode func(*Manifest, string) error
}

// fields is the manifest's part of the metadata, in the order of writing.
var fields = []field{
	text("side", func(m *Manifest) *string { return &m.Side }),
	coded("producer", func(m *Manifest) *Producer { return &m.Producer }),
	text("model", func(m *Manifest) *string { return &m.Model }),
	raw("config", func(m *Manifest) *json.RawMessage { return &m.Config }),
	text("weights", func(m *Manifest) *string { return &m.Weights }),
	coded("port", func(m *Manifest) *Port { return &m.Port }),
	text("program", func(m *Manifest) *string { return &m.Program }),
	coded("scope", func(m *Manifest) *Scope { return &m.Scope }),
	coded("entries", func(m *Manifest) *[]string { return &m.Entries }),
	coded("derived", func(m *Manifest) *[]string { return &m.Derived }),
	coded("fused", func(m *Manifest) *[]string { return &m.Fused }),
	text("prompt", func(m *Manifest) *string { return &m.Prompt }),
	{keyPrefix + "dtype", encodeDType, decodeDType},
	text("device", func(m *Manifest) *string { return &m.Device }),
	{keyPrefix + "passes", encodePasses, decodePasses},
	coded("axes", func(m *Manifest) *map[string]string { return &m.Axes }),
}

// text is a field that is written as it is.
func text(key string, at func(*Manifest) *string) field {
	return field{
		keyPrefix + key,
		func(m Manifest) (string, error) { return *at(&m), nil },
		func(m *Manifest, s string) error { *at(m) = s; return nil },
	}
}

// raw is a field that is JSON already.
func raw(key string, at func(*Manifest) *json.RawMessage) field {
	valid := func(s string) error {
		if s != "" && !json.Valid([]byte(s)) {
			return errors.New("not JSON")
		}
		return nil
	}
	return field{
		keyPrefix + key,
		func(m Manifest) (string, error) { s := string(*at(&m)); return s, valid(s) },
		func(m *Manifest, s string) error { *at(m) = json.RawMessage(s); return valid(s) },
	}
}

// coded is a field that is written as JSON. Reading refuses unknown keys: an overlooked limit of a scope would
// make a narrow trace look like a whole trace.
func coded[T any](key string, at func(*Manifest) *T) field {
	return field{
		keyPrefix + key,
		func(m Manifest) (string, error) {
			if reflect.ValueOf(at(&m)).Elem().IsZero() {
				return "", nil
			}
			b, err := json.Marshal(at(&m))
			return string(b), err
		},
		func(m *Manifest, s string) error {
			d := json.NewDecoder(bytes.NewReader([]byte(s)))
			d.DisallowUnknownFields()
			if err := d.Decode(at(m)); err != nil {
				return err
			}
			if _, err := d.Token(); !errors.Is(err, io.EOF) {
				return errors.New("more than one JSON value")
			}
			return nil
		},
	}
}

func encodeDType(m Manifest) (string, error) {
	if m.DType == 0 {
		return "", nil
	}
	if !m.DType.Valid() {
		return "", fmt.Errorf("%s is not a dtype", m.DType)
	}
	return m.DType.String(), nil
}

func decodeDType(m *Manifest, s string) (err error) {
	m.DType, err = hooks.ParseDType(s)
	return err
}

func encodePasses(m Manifest) (string, error) {
	if m.Passes == 0 {
		return "", nil
	}
	return strconv.Itoa(m.Passes), nil
}

func decodePasses(m *Manifest, s string) (err error) {
	m.Passes, err = strconv.Atoi(s)
	return err
}

// check returns an error for values of the right form that no trace has.
func (m *Manifest) check() error {
	if m.Passes < 0 || m.Passes > maxPasses {
		return fmt.Errorf("%d passes, want 0 to %d", m.Passes, maxPasses)
	}
	if len(m.Fused) > maxFused {
		return fmt.Errorf("%d modules with fused attention, more than the %d that are read", len(m.Fused), maxFused)
	}
	declared := !reflect.ValueOf(m.Scope).IsZero()
	if declared && (m.Scope.Level < 1 || m.Scope.Level > 3) {
		return fmt.Errorf("scope has level %d, want 1, 2 or 3", m.Scope.Level)
	}
	return nil
}

// header returns the text of the header of a trace without tensors, its status open.
func (m Manifest) header() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	b := append([]byte(statusStart), StatusOpen.slot()...)
	b = append(b, `","`+sequenceKey+`":"`+execution+`"`...)
	for _, f := range fields {
		value, err := f.encode(m)
		if err == nil && !utf8.ValidString(value) {
			err = errors.New("not valid UTF-8")
		}
		if err != nil {
			return nil, fmt.Errorf("manifest, %s: %w", f.key, err)
		}
		if value == "" {
			continue
		}
		b = append(b, ',')
		b = appendString(b, f.key)
		b = append(b, ':')
		b = appendString(b, value)
	}
	return append(b, "}}"...), nil
}

// parseManifest is the inverse of header. Unknown keys are ignored: a change of the meaning of a trace changes the
// version.
func parseManifest(metadata map[string]string) (Manifest, error) {
	var m Manifest
	if v := metadata[versionKey]; v != version {
		return m, fmt.Errorf("trace version %s, this build reads version %q", plain.Quote(v), version)
	}
	for _, f := range fields {
		value, declared := metadata[f.key]
		if !declared {
			continue
		}
		if err := f.decode(&m, value); err != nil {
			return m, fmt.Errorf("metadata %s: %w", f.key, err)
		}
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("metadata: %w", err)
	}
	return m, nil
}
