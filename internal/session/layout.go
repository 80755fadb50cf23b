package session

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
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

// FileKinds are the kinds, in the order in which they are removed. The settings go last: they are what a folder is known by.
var FileKinds = []string{FileLeft, FileTraces, FileStored, FileHanded, FileDigests, FileLast, FileSettings}

// layout is what tracediff writes where, by its path in the folder. What it does not name is somebody else's.
var layout = []struct {
	kind string
	path *regexp.Regexp
}{
	{FileTraces, regexp.MustCompile(`^(local|reference)\.(safetensors|program\.json)$`)},
	{FileStored, regexp.MustCompile(`^references/[0-9a-f]{16}(\.safetensors|\.json|\.floor\.json|\.program\.json)$`)},
	{FileStored, regexp.MustCompile(`^floors/[0-9a-f]{16}\.json$`)},
	{FileStored, regexp.MustCompile(`^tokens/[0-9a-f]{16}\.json$`)},
	{FileHanded, regexp.MustCompile(`^(order\.json|names\.txt)$`)},
	{FileHanded, regexp.MustCompile(`^ports/[A-Za-z0-9._-]+-[0-9a-f]{16}/((steps/)?(config\.json|model\.safetensors)|port\.json)$`)},
	{FileDigests, regexp.MustCompile(`^digests\.json$`)},
	{FileLast, regexp.MustCompile(`^last-compare\.json$`)},
	{FileSettings, regexp.MustCompile(`^settings\.json$`)},
	{FileLeft, regexp.MustCompile(`^(local|reference)\.(lock|safetensors\.(part|part\.new|lock))$`)},
	{FileLeft, regexp.MustCompile(`(?s)^exec/(local|reference)-[0-9]+(\.lock|/.+)$`)}, // whatever a command left in its own folder
	{FileLeft, regexp.MustCompile(`^(settings\.json|last-compare\.json|digests\.json|order\.json|names\.txt|reference\.safetensors)-[0-9]+\.part$`)},
	{FileLeft, regexp.MustCompile(`^references/[0-9a-f]{16}\.(lock|[0-9a-z]{26}\.new\.(safetensors(\.part|\.part\.new|\.lock)?|program\.json(\.part)?))$`)},
	{FileLeft, regexp.MustCompile(`^(references|floors)/floor-[0-9]+\.tmp(\.lock|/([01]\.safetensors(\.part|\.part\.new|\.lock)?|floor\.json))$`)},
	{FileLeft, regexp.MustCompile(`^(references/[0-9a-f]{16}(\.floor)?|floors/[0-9a-f]{16}|tokens/[0-9a-f]{16})\.json-[0-9]+\.part$`)},
	{FileLeft, regexp.MustCompile(`^ports/new-[0-9]+\.tmp(\.lock|/((steps/)?(config\.json|model\.safetensors)|port\.json))$`)},
	{FileLeft, regexp.MustCompile(`^(local|reference)\.program\.json-[0-9]+\.part$`)},
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

// Files are those that a run by these settings reads or writes; dir is where traces are kept.
func (s *Settings) Files(dir string) []string {
	paths := append(ModelFiles(s.Model, s.Weights), dir, s.Order, s.Program, s.Map, s.Weights, s.Python)
	for _, side := range []Source{s.Local, s.Reference} {
		switch side.Kind {
		case KindFile:
			paths = append(paths, side.Text)
		case KindExec:
			paths = append(paths, CommandFiles(side.Text, side.Folder)...)
		}
	}
	return paths
}

// CommandFiles are the files that the words of a command name, from the folder in which it runs: the port itself, most often.
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

// modelFile is the name of a file that a model is read from. A person may keep other files beside them, such as reports.
var modelFile = regexp.MustCompile(`(^|_)config\.json$|^tokenizer|^chat_template|^(special_tokens_map|added_tokens|vocab)\.json$|^merges\.txt$|\.safetensors(\.index\.json)?$|\.bin$`)

// ModelFiles are the files of model directories. One that is not there has none.
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
