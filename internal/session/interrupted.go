package session

import (
	"context"
	"os"

	"github.com/tracediff/tracediff/internal/hint"
)

// keepInterrupted writes the settings of a run that a person interrupted: the next comparison uses them, and not those of an earlier run. j is the
// run's job, nil where it was not open yet. It returns err, together with an error of writing. After any other error the settings stay as they were.
func keepInterrupted(ctx context.Context, s Settings, dir string, j *Job, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case j != nil:
		return hint.Also(err, j.save())
	}
	if info, failed := os.Stat(s.Order); s.Order != "" && (failed != nil || !info.Mode().IsRegular()) {
		return err // a stream, which the next run cannot read
	}
	return hint.Also(err, s.save(dir))
}
