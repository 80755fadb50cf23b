package session

import (
	"context"
	"os"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
)

// keepInterrupted writes the settings of an interrupted run, so that the next comparison uses them instead of the
// settings of an earlier run. j is the run's job, or nil if the run had not opened it yet. keepInterrupted returns
// err, joined with an error of writing. After every other error the old settings stay.
func keepInterrupted(ctx context.Context, s settings.Settings, dir string, j *job.Job, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case j != nil:
		return hint.Also(err, j.Save())
	}
	if info, failed := os.Stat(s.Order); s.Order != "" && (failed != nil || !info.Mode().IsRegular()) {
		return err // a stream, which the next run cannot read
	}
	return hint.Also(err, s.Save(dir))
}
