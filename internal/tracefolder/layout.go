// Package tracefolder knows the layout of a folder of traces: the files of tracediff, the locks of running writers,
// the leftovers of interrupted runs, and the results of the last comparisons.
package tracefolder

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
)

// The kinds of files that tracediff puts into a folder of traces.
const (
	FileTraces   = "captured trace"
	FileStored   = "stored reference file"
	FileHanded   = "hand-over file" // for other runners: the order, the embedded checkpoint
	FileLeft     = "leftover"       // of a run that did not end
	FileDigests  = "digest file"
	FileLast     = "record of the last comparison"
	FileSettings = "settings file"
	FileForeign  = "" // not tracediff's: never touched
)

// FileKinds are the kinds of files, in the order of removal. The settings go last, because they identify a folder
// of traces.
var FileKinds = []string{FileLeft, FileTraces, FileStored, FileHanded, FileDigests, FileLast, FileSettings}

// layout lists the files of tracediff by their paths in the folder. Every other file belongs to somebody else.
var layout = []struct {
	kind string
	path *regexp.Regexp
}{
	{FileTraces, regexp.MustCompile(`^(gate/)?(local|reference)\.(safetensors|program\.json)$`)},
	{FileStored, regexp.MustCompile(`^references/[0-9a-f]{16}(\.safetensors|\.json|\.floor\.json|\.program\.json)$`)},
	{FileStored, regexp.MustCompile(`^floors/[0-9a-f]{16}\.json$`)},
	{FileStored, regexp.MustCompile(`^tokens/[0-9a-f]{16}\.json$`)},
	{FileHanded, regexp.MustCompile(`^(order\.json|names\.txt)$`)},
	{FileHanded, regexp.MustCompile(`^ports/[A-Za-z0-9._-]+-[0-9a-f]{16}/((steps/)?(config\.json|model\.safetensors)|port\.json)$`)},
	{FileDigests, regexp.MustCompile(`^digests\.json$`)},
	{FileLast, regexp.MustCompile(`^last-compare\.json$`)},
	{FileSettings, regexp.MustCompile(`^settings\.json$`)},
	{FileLeft, regexp.MustCompile(`^(gate/)?(local|reference)\.(lock|safetensors\.(part|part\.new|lock))$`)},
	{FileLeft, regexp.MustCompile(`(?s)^exec/(local|reference)-[0-9]+(\.lock|/.+)$`)}, // whatever a command left in its own folder
	{FileLeft, regexp.MustCompile(`^(settings\.json|last-compare\.json|digests\.json|order\.json|names\.txt|(gate/)?reference\.safetensors)-[0-9]+\.part$`)},
	{FileLeft, regexp.MustCompile(`^references/[0-9a-f]{16}\.(lock|[0-9a-z]{26}\.new\.(safetensors(\.part|\.part\.new|\.lock)?|program\.json(\.part)?))$`)},
	{FileLeft, regexp.MustCompile(`^(references|floors)/floor-[0-9]+\.tmp(\.lock|/([01]\.safetensors(\.part|\.part\.new|\.lock)?|floor\.json))$`)},
	{FileLeft, regexp.MustCompile(`^(references/[0-9a-f]{16}(\.floor)?|floors/[0-9a-f]{16}|tokens/[0-9a-f]{16})\.json-[0-9]+\.part$`)},
	{FileLeft, regexp.MustCompile(`^ports/new-[0-9]+\.tmp(\.lock|/((steps/)?(config\.json|model\.safetensors)|port\.json))$`)},
	{FileLeft, regexp.MustCompile(`^(gate/)?(local|reference)\.program\.json-[0-9]+\.part$`)},
	{FileLeft, regexp.MustCompile(`^references/[0-9a-f]{16}\.[0-9a-z]{26}\.new\.program\.json-[0-9]+\.part$`)},
}

// MaxFolder bounds the files of a folder of traces that are looked at: some thousand stored references have three each.
const MaxFolder = 100_000

// Kept reports whether a path in a folder of traces is one where tracediff keeps something. Any other file in it is a
// person's own, and may be an earlier report.
func Kept(name string) bool {
	return FileKind(name) != FileForeign || strings.HasPrefix(name, "model/")
}

// FileKind tells the kind of a file by its path in a folder of traces, with slashes.
func FileKind(name string) string {
	for _, l := range layout {
		if l.path.MatchString(name) {
			return l.kind
		}
	}
	return FileForeign
}

// FilesOf are the files that a run by these settings reads or writes; dir is where traces are kept.
func FilesOf(s *settings.Settings, dir string) []string {
	paths := append(ModelFiles(s.Model, s.Weights), dir, s.Order, s.Program, s.Map, s.Weights, s.Python)
	for _, side := range []settings.Source{s.Local, s.Reference} {
		switch side.Kind {
		case settings.KindFile:
			paths = append(paths, side.Text)
		case settings.KindExec:
			paths = append(paths, CommandFiles(side.Text, side.Folder)...)
		}
	}
	return paths
}

// CommandFiles returns the files named by the words of a command, relative to the folder it runs in: most often the
// port itself.
func CommandFiles(command, folder string) []string {
	var paths []string
	for _, word := range strings.FieldsFunc(command, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`;|&<>()'"=`, r) }) {
		if !filepath.IsAbs(word) {
			word = filepath.Join(folder, word)
		}
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
			paths = append(paths, word)
		}
	}
	return paths
}

// modelFile matches the names of a model's files. A model directory may contain other files, such as a user's
// reports.
var modelFile = regexp.MustCompile(`(^|_)config\.json$|^tokenizer|^chat_template|^(special_tokens_map|added_tokens|vocab)\.json$|^merges\.txt$|\.safetensors(\.index\.json)?$|\.bin$`)

// ModelFiles returns the paths of the model files in some directories. It skips missing directories.
func ModelFiles(dirs ...string) []string {
	var paths []string
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries[:min(len(entries), MaxFolder)] {
			if modelFile.MatchString(e.Name()) {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
	}
	return paths
}

// GateFolder, in a folder of traces, has the traces of both sides by tracediff.toml, of the last prompt: the others are of the last capture.
const GateFolder = "gate"

// TracePath is where a side's trace is kept in a folder of traces.
func TracePath(dir, side string) string { return filepath.Join(dir, side+".safetensors") }

// CheckDir returns an error if the path of --dir exists and is not a folder. A missing folder is created later.
func CheckDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return hint.Add(fmt.Errorf("--dir: %s is not a folder", dir), "--dir names the folder where traces are kept; it is created if it does not exist")
	}
	return nil
}
