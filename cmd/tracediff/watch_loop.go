package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// ended is the error of a watch that a person has ended. No line is printed; the exit status is 130.
type ended struct{}

func (ended) Error() string { return "the watch was ended" }

// restless is the largest number of runs in a row that a file may stop. A file that changes in every run is written by the runs,
// which would otherwise never end. The result then names files that changed during the run.
const restless = 4

// pass is one run of a watch, with its outcome.
type pass struct {
	number  int
	changed []string // the files that caused the run; nil for the first run
	removed bool     // all changed files are gone
	took    time.Duration
	result  *compare.Result // nil with err
	since   string          // how the first divergence moved
	err     error           // of the comparison, or of the build
	built   string          // the failed build command, and how it failed; empty if the build did not fail
	said    []string        // the last lines of output
	late    []string        // files that changed during the run and did not stop the run
}

// loop runs, waits for a change, and runs again, until the context is done.
func (w *watching) loop(ctx context.Context) error {
	w.show = newDisplay(w)
	defer w.show.close()
	defer func() { _ = w.watcher.Close() }() // no more changes are needed
	stopped := map[string]int{}              // by file, the number of runs in a row that the file has stopped
	var changed []string
	for n := 1; ; n++ {
		own, stop := context.WithCancel(ctx)
		done := make(chan *pass, 1)
		go func() { done <- w.run(own, n, changed) }()
		again, p := w.await(ctx, done, stopped)
		stop()
		if p == nil {
			if again == nil {
				w.show.close() // before the run ends, which may take time
			}
			<-done
		}
		switch {
		case again == nil && p == nil:
			return ended{}
		case p == nil:
			changed = union(changed, again)
			continue
		}
		clear(stopped)
		w.show.result(p)
		select {
		case changed = <-w.watcher.Changes:
		case <-ctx.Done():
			w.show.close()
			return ended{}
		}
	}
}

// await waits for the end of a run and returns the run. A change stops the run: then await returns the changed files and a nil
// pass. When ctx is done, both are nil.
func (w *watching) await(ctx context.Context, done <-chan *pass, stopped map[string]int) (changed []string, p *pass) {
	var late []string
	for {
		select {
		case p = <-done:
			if ctx.Err() != nil {
				return nil, nil
			}
			p.late = relative(late)
			return nil, p
		case paths := <-w.watcher.Changes:
			for _, path := range paths {
				if stopped[path]++; stopped[path] > restless {
					late = union(late, []string{path})
				} else {
					changed = append(changed, path)
				}
			}
			if changed != nil {
				return union(changed, late), nil
			}
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// run builds and compares once. It reads every file and flag again.
func (w *watching) run(ctx context.Context, n int, changed []string) *pass {
	p := &pass{number: n, changed: relative(changed)}
	p.removed = !slices.ContainsFunc(changed, func(path string) bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, fs.ErrNotExist)
	})
	started := time.Now()
	said := &spoken{}
	p.err = w.once(ctx, p, said)
	p.took, p.said = time.Since(started), said.lines()
	return p
}

func (w *watching) once(ctx context.Context, p *pass, said *spoken) error {
	file, err := gatefile.OpenWatch(w.c.String("config"))
	if err != nil {
		return err
	}
	line, folder := "", ""
	if file != nil {
		line, folder = file.Build, file.Folder
	}
	if len(w.words) > 0 {
		line, folder = "", ""
	}
	if name := cmp.Or(strings.Join(w.words, " "), line); name != "" {
		w.show.state(p, "building: "+name)
		if err := reference.RunBuild(ctx, line, w.words, folder, said); err != nil {
			p.built = name + ": " + ending(err)
			return err
		}
	}
	w.show.state(p, "comparing")
	s, a, err := w.asked(file)
	if err != nil {
		return err
	}
	e := env(w.c, w.out)
	e.Notes, e.Errors, e.Quiet, e.Progress = said, said, false, nil
	r, err := session.Compare(ctx, e, s, *a)
	if err != nil {
		return err
	}
	tracefolder.RemoveLeftovers(e, s)
	if p.since, err = tracefolder.Since(w.c.String("dir"), s.Local, r); err != nil || p.since == "" || w.before != nil {
		p.since, err = tracefolder.Moved(s.Local, w.before, r)
	}
	if err != nil {
		return err
	}
	p.result, w.before = r, r
	return w.out.writeFiles(w.c, words.New(report.NewDocument(version(), newRun("", r, nil))))
}

// ending says how a build failed.
func ending(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ProcessState.String()
	}
	return err.Error()
}

// spoken keeps the end of a command's output.
type spoken struct {
	mu   sync.Mutex
	text []byte
}

// maxTail bounds the kept bytes, and maxLines the shown lines.
const (
	maxTail  = 16 << 10
	maxLines = 12
)

func (t *spoken) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, data...)
	if n := len(t.text); n > 2*maxTail {
		t.text = append(t.text[:0], t.text[n-maxTail:]...)
	}
	return len(data), nil
}

// lines are the last lines, without control characters.
func (t *spoken) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.ReplaceAll(strings.TrimRight(string(t.text), "\n\r "), "\r\n", "\n")
	if text == "" {
		return nil
	}
	all := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	all = all[max(0, len(all)-maxLines):]
	for i := range all {
		all[i] = plain.Text(strings.ReplaceAll(all[i], "\t", "    "))
	}
	return all
}

// head is the number of the run and its cause: "run 3, port.c changed".
func (p *pass) head() string {
	text := fmt.Sprintf("run %d", p.number)
	how := "changed"
	if p.removed {
		how = "removed"
	}
	switch n := len(p.changed); {
	case n == 1:
		text += ", " + plain.Text(p.changed[0]) + " " + how
	case n > 1:
		text += fmt.Sprintf(", %s and %d more %s", plain.Text(p.changed[0]), n-1, how)
	}
	return text
}

// verdict is the outcome of the run, in a line.
func (p *pass) verdict(s text.Style) string {
	switch {
	case p.built != "":
		return "BUILD FAILED: " + plain.Text(p.built)
	case p.err != nil:
		return "NOT COMPARED: " + plain.Text(oneLine(p.err.Error()))
	}
	return text.Verdict(p.result, s)
}

// notes are remarks on the run, in addition to its verdict.
func (p *pass) notes() []string {
	if len(p.late) == 0 {
		return nil
	}
	return []string{"note: changed during this run, which went on: " + plain.Text(strings.Join(p.late, ", "))}
}

// duration is the time of the run, to a tenth of a second.
func (p *pass) duration() string { return fmt.Sprintf("%.1f s", p.took.Seconds()) }
