// Package tomlfile reads TOML that people write. It is strict: a key that is not known is an error, since a limit that was
// misspelt is none; and every error quotes the line, since a person looks for it in the file.
package tomlfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Decode reads data into the struct that into points to. The caller bounds the size of data.
func Decode(data []byte, into any) error {
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(into); err != nil {
		return quoted(err, data)
	}
	return nil
}

// quoted adds the line to an error of the TOML reader, and names a key that it does not know.
func quoted(err error, data []byte) error {
	var at *toml.DecodeError
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		at = &unknown.Errors[0]
		err = fmt.Errorf("unknown key %.80q", strings.Join(at.Key(), "."))
	} else if !errors.As(err, &at) {
		return err
	}
	row, _ := at.Position()
	lines := strings.Split(string(data), "\n")
	if row < 1 || row > len(lines) {
		return err
	}
	return fmt.Errorf("line %d, %.120q: %w", row, strings.TrimSpace(lines[row-1]), err)
}
