package session

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
)

// Initial returns the text of a new tracediff.toml at path: the example, filled in with the last capture in dir, if
// any.
func Initial(example []byte, path, dir string) (text []byte, taken []gatefile.Taken, err error) {
	s, there, err := settings.LastSettings(dir)
	if err != nil || !there {
		return example, nil, err
	}
	c := gatefile.Captured{Settings: s, Dir: dir}
	c.Patterns, c.Level, err = shown(&s, dir)
	if c.Gone = errors.Is(err, fs.ErrNotExist); err != nil && !c.Gone {
		return nil, nil, fmt.Errorf("what the port dumped at the last capture: %w", err)
	}
	if c.Lines, err = mapText(&s); err != nil {
		return nil, nil, err
	}
	if c.Input, err = otherInput(s); err != nil {
		return nil, nil, err
	}
	return c.Write(example, path)
}

// otherInput returns the ids of the last capture if the capture took them from a trace, or from a text without BOS.
// For every other input it returns "".
func otherInput(s settings.Settings) (string, error) {
	if s.Prompt != nil || s.Tokens != "" {
		return "", nil
	}
	ck, folder, err := origin.Open(s.Model)
	if err != nil {
		return "", err
	}
	m := &job.Model{Checkpoint: ck, Folder: folder}
	in, err := job.ReadInput(s, m)
	if err := hint.Also(err, m.Close()); err != nil {
		return "", fmt.Errorf("the token ids of the last capture: %w", err)
	}
	return reference.FormatTokens(in.Passes), nil
}
