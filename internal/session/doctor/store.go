package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/session/choice"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

const hintClean = "tracediff doctor --clean removes all but the references that can be used"

// checkStore says what is kept in the folder of traces, how old and how large, and whether the next comparison of this
// input would use it.
func (p *Patient) checkStore(_ context.Context, s *health.Section) {
	root, err := openFolder(p.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		s.OK("nothing is kept in %s yet", p.Dir)
		return
	}
	if err != nil {
		return // said of the disk
	}
	defer root.Close()
	files, _, err := scanFolder(root)
	if err != nil {
		s.Fail("choose another folder with --dir", "%s: %v", p.Dir, err)
		return
	}
	if _, _, err := settings.LastSettings(p.Dir); err != nil {
		s.Warn(Hint(err), "%v", err)
	}
	localTrace(s, p.Dir)
	p.references(s)
	sums, counts := map[string]int64{}, map[string]int{}
	var total int64
	for _, f := range files {
		sums[f.kind] += f.size
		counts[f.kind]++
		if f.kind != tracefolder.FileForeign {
			total += f.size
		}
	}
	if n := counts[tracefolder.FileLeft]; n > 0 {
		s.Warn("unless a run is in progress: "+hintClean, "%s, %s: %s", amount.Of(n, tracefolder.FileLeft), amount.Bytes(sums[tracefolder.FileLeft]), someOf(ofKind(files, tracefolder.FileLeft)))
	}
	if n := counts[tracefolder.FileForeign]; n > 0 {
		s.OK("%s not written by tracediff: %s", amount.Of(n, "file"), someOf(ofKind(files, tracefolder.FileForeign)))
	}
	clean := "--clean removes them"
	if counts[tracefolder.FileStored] > 0 {
		clean += " and keeps the references, " + amount.Bytes(sums[tracefolder.FileStored])
	}
	s.OK("%s takes %s in %s; %s", p.Dir, amount.Bytes(total), amount.Of(len(files)-counts[tracefolder.FileForeign], "file"), clean)
}

func ofKind(files []storedFile, kind string) []storedFile {
	var some []storedFile
	for _, f := range files {
		if f.kind == kind {
			some = append(some, f)
		}
	}
	return some
}

// localTrace describes the trace that compare makes again each time.
func localTrace(s *health.Section, dir string) {
	path := tracefolder.TracePath(dir, "local")
	info, err := os.Stat(path)
	if err != nil {
		return // there need not be one
	}
	t, err := capture.Open(path)
	if err != nil {
		s.Warn("tracediff capture makes it again", "%s cannot be read: %v", filepath.Base(path), err)
		return
	}
	defer t.Close()
	s.OK("%s: %s, level %d, %s, %s on disk, %s old; compare makes it again",
		filepath.Base(path), session.Describe(t), t.Manifest().Scope.Level, amount.Of(len(t.Records()), "tensor"), amount.Bytes(info.Size()), age(info.ModTime()))
}

// references describes each stored reference, and whether a run on this input would use it.
func (p *Patient) references(s *health.Section) {
	entries, err := reference.NewStore(p.Dir).List()
	if err != nil {
		s.Fail(hintClean, "%v", err)
		return
	}
	if len(entries) == 0 {
		return
	}
	j, whyNot := job.Open(context.Background(), nil, p.Settings, p.Dir)
	if whyNot == nil {
		defer j.Close()
	}
	for _, e := range entries {
		name := filepath.Base(e.Path)
		if e.Err != nil {
			s.Warn(hintClean, "%s, %s, %s old, is never used: %v", name, amount.Bytes(e.Size), age(e.Made), e.Err)
			continue
		}
		if err := e.Intact(); err != nil {
			s.Warn(hintClean, "%s, %s, %s old, is never used: %v", name, amount.Bytes(e.Size), age(e.Made), err)
			continue
		}
		use := "not known whether it fits this input, because the model cannot be opened"
		if whyNot == nil {
			use = choice.Use(j, &e)
		}
		s.OK("%s: %s: %s", name, describeEntry(&e), use)
	}
}

// describeEntry has the parts of a reference's key, its size and its age.
func describeEntry(e *reference.Entry) string {
	by := map[string]string{reference.Transformers: "transformers", reference.GoWalk: "float64 walk", reference.External: "exec:" + strings.ReplaceAll(e.Key.Version, "\n", " ")}[e.Key.Name]
	tokens := e.Key.Tokens
	if len(tokens) > 40 {
		tokens = tokens[:40] + "..."
	}
	if e.Key.NewTokens > 0 {
		tokens += fmt.Sprintf(" and %d decoded", e.Key.NewTokens)
	}
	floor := "no noise floor"
	if e.Floor {
		floor = "with its noise floor"
	}
	return fmt.Sprintf("%s of %s, %s, level %d, tokens %s, %s, %s on disk, %s old", by, e.Model, e.Key.DType, e.Key.Scope.Level, tokens, floor, amount.Bytes(e.Size), age(e.Made))
}

// age is how long ago something was, in the unit that a person would use.
func age(then time.Time) string {
	d := time.Since(then)
	switch {
	case d < 0:
		return "0 s" // a clock that was set back
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
