package session

import (
	"context"
	"os"

	"github.com/tracediff/tracediff/internal/hint"
)

// keepInterrupted keeps the settings of a run that was stopped, so that the next comparison uses them and not those of the run before, or none. j is
// the run's job, nil where it was not yet open. It returns err, and what kept it from keeping them. Any other error leaves the settings as they were.
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
