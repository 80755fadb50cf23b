package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// ownStreams are the paths of this process's streams. Reports for such a path go through the stream: opening the path would
// overwrite the earlier output of the stream in a file.
func ownStreams(c *cli.Context) map[string]io.Writer {
	return map[string]io.Writer{
		"/dev/stdout": c.App.Writer, "/dev/fd/1": c.App.Writer, "/proc/self/fd/1": c.App.Writer,
		"/dev/stderr": c.App.ErrWriter, "/dev/fd/2": c.App.ErrWriter, "/proc/self/fd/2": c.App.ErrWriter,
	}
}

// add adds a report and checks the file at its path, if any. It opens no file.
func (o *outputs) add(c *cli.Context, format, path string) error {
	if path == "-" {
		return hint.Add(errors.New("--report: - is not a file"), "--format "+format+" writes to standard output; ./- is a file of that name")
	}
	if w := ownStreams(c)[path]; w != nil {
		o.files = append(o.files, outputFile{format: format, stream: w, path: path})
		return nil
	}
	to, err := files.NewTarget(path)
	if err != nil {
		return reportError(path, err)
	}
	for _, f := range o.files {
		if f.to != nil && to.Replaces() && to.Is(f.path) {
			return hint.Add(fmt.Errorf("--report: two reports would be written to %q", path), "give every report a file of its own")
		}
	}
	for name, w := range map[string]io.Writer{"standard output": c.App.Writer, "standard error": c.App.ErrWriter} {
		if out, ok := w.(*output); ok {
			w = out.Writer
		}
		if f, ok := w.(*os.File); ok && to.Replaces() && to.IsFile(f) {
			return hint.Add(fmt.Errorf("--report: %s is the file that %s goes to", path, name), ownFile)
		}
	}
	o.files = append(o.files, outputFile{format: format, to: to, path: path})
	return nil
}

const ownFile = "give the report a file of its own"

// open protects the files of the command line from being overwritten by reports, and makes sure that every report can be
// written: an hour of work must not end at a missing folder.
func (o *outputs) open(c *cli.Context) error {
	if len(o.files) == 0 {
		return nil
	}
	var named []string
	if c.Command.Name != gateName && c.Command.Name != watchName {
		named = c.Args().Slice()
	}
	for _, name := range []string{"order", "map", "tolerances", "baseline", "config", "local", "reference", "python"} {
		path := c.String(name)
		if command, ok := strings.CutPrefix(path, settings.ExecPrefix); ok {
			named = append(named, tracefolder.CommandFiles(command, ".")...)
		} else if path != "" {
			named = append(named, path)
		}
	}
	named = append(named, tracefolder.ModelFiles(c.String("model"))...)
	if err := o.spare(append(named, c.String("dir"))...); err != nil {
		return err
	}
	for _, f := range o.files {
		if f.to == nil {
			continue
		}
		if err := f.to.Ready(); err != nil {
			o.close()
			return reportError(f.path, err)
		}
	}
	return nil
}

// spare refuses reports that would overwrite a file that the command reads or writes, now and at the time of writing. A
// folder stands for the files that tracediff keeps in the folder.
func (o *outputs) spare(paths ...string) error {
	if len(o.files) == 0 {
		return nil
	}
	o.spared = append(o.spared, paths...)
	for i := range o.files {
		f := &o.files[i]
		if f.to == nil {
			continue
		}
		if err := sparing(f.to, paths); err != nil {
			f.refused = true
			return err
		}
	}
	return nil
}

func sparing(to *files.Target, paths []string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if err := sparingFolder(to, path); err != nil {
				return err
			}
			continue
		}
		if to.Is(path) {
			what := "a file that"
			if path != to.Path {
				what = path + ", which"
			}
			return hint.Add(fmt.Errorf("--report: %s is %s this command reads or writes", to.Path, what), ownFile)
		}
	}
	return nil
}

// sparingFolder refuses a report at the path of a file that tracediff keeps in a folder of traces.
func sparingFolder(to *files.Target, folder string) error {
	refused := func(name string) error {
		what := "a file that"
		if kept := filepath.Join(folder, name); kept != filepath.Clean(to.Path) {
			what = kept + ", which"
		}
		return hint.Add(fmt.Errorf("--report: %s is %s tracediff keeps there", to.Path, what), ownFile)
	}
	if name, ok := to.Below(folder); ok {
		if tracefolder.Kept(name) {
			return refused(name)
		}
	}
	seen := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > tracefolder.MaxFolder {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return nil // a folder that cannot be listed is not read either
		}
		name, err := filepath.Rel(folder, path)
		if err == nil && tracefolder.Kept(filepath.ToSlash(name)) && to.Is(path) {
			return refused(name)
		}
		return nil
	})
	return err
}

// write writes a report, after a second check of the file at its path.
func (o *outputs) write(f *outputFile, text []byte) error {
	if f.to == nil {
		_, err := f.stream.Write(text)
		return err
	}
	if f.to.Replaces() {
		to, err := files.NewTarget(f.path)
		if err == nil {
			err = sparing(to, o.spared)
		}
		if err == nil && !to.Replaces() {
			err = to.Ready()
		}
		if err != nil {
			return err
		}
		f.to = to
	}
	return hint.Also(f.to.Write(text), f.to.Close())
}

// close closes files that were opened and not written.
func (o *outputs) close() {
	for _, f := range o.files {
		if f.to != nil {
			_ = f.to.Close() // nothing was written
		}
	}
}

// reportError is the error for the path of a report.
func reportError(path string, err error) error {
	return hint.Add(fmt.Errorf("--report: %w", advice.OnPath(path, err)), "want FORMAT=FILE with a FILE in an existing folder")
}
