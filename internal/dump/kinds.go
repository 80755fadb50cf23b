package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/pickle"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/torch"
)

// Next is what to do with a file that is not read.
const Next = "want a trace, or a dump: .safetensors, .npz, .npy, torch.save of a dict of tensors, or a folder of them; docs/ports.md has all"

// tomlHeading is the first line of most TOML files.
var tomlHeading = regexp.MustCompile(`^\[+[A-Za-z][A-Za-z0-9_.-]*\]+$`)

// known has the first bytes of files that are not dumps, with their description and a hint.
var known = []struct{ start, what, next string }{
	{"GGUF", "a GGUF file", "GGUF holds weights; a trace of llama.cpp is recorded with hooks/c/tracediff.h, or is the text that llama-eval-callback prints"},
	{"\x1f\x8b", "a gzip file", "unpack it first: gunzip"},
	{"BZh", "a bzip2 file", "unpack it first: bunzip2"},
	{"\xfd7zXZ\x00", "an xz file", "unpack it first: unxz"},
	{"\x28\xb5\x2f\xfd", "a zstd file", "unpack it first: unzstd"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"},
	{"\x89HDF\r\n\x1a\n", "an HDF5 file", "write it as npz: numpy.savez(FILE, **{name: array})"},
	{"SQLite format 3\x00", "an SQLite database", ""},
	{"ARROW1", "an Arrow file", ""},
	{"PAR1", "a Parquet file", ""},
	{"\x7fELF", "a program", "to compare what it writes: --local 'exec:COMMAND'"},
	{"MZ", "a program for Windows", "to compare what it writes: --local 'exec:COMMAND'"},
	{"#!", "a script", "to compare what it writes: --local 'exec:COMMAND'"},
	{"\x89PNG", "a PNG image", ""},
	{"%PDF", "a PDF file", ""},
}

// foreignFile is the error for a file that is not a dump, by its first bytes.
func foreignFile(r io.ReaderAt, size int64, start []byte) error {
	if size == 0 {
		return hint.Add(errors.New("an empty file"), "did the run that wrote it end?")
	}
	for _, k := range known {
		if strings.HasPrefix(string(start), k.start) {
			next := k.next
			if next == "" {
				next = Next
			}
			return hint.Add(errors.New(k.what+", which is not a dump of tensors"), next)
		}
	}
	switch {
	case len(start) > 262 && string(start[257:262]) == "ustar":
		return hint.Add(errors.New("a tar archive, which is not a dump of tensors"), "unpack it first: tar -xf")
	case isONNX(start):
		return hint.Add(errors.New("an ONNX model, which has weights and no activations"), "record a run of it: python -m tracediff.onnx MODEL.onnx --tokens IDS --out FILE; docs/ports.md")
	case looksLikeText(start):
		return text(r, size, start)
	}
	return hint.Add(fmt.Errorf("%d bytes that are not a dump of tensors, beginning with % x", size, start[:min(8, len(start))]),
		"for an array of numbers without a header: numpy.save(FILE, numpy.fromfile(RAW, dtype).reshape(shape))")
}

// isONNX reports whether a file begins as a model of ONNX does: field 1, a small version; then field 2 to 8.
func isONNX(start []byte) bool {
	return len(start) > 4 && start[0] == 0x08 && start[1] > 0 && start[1] < 32 && (start[2] == 0x12 || start[2] == 0x3a) &&
		(bytes.Contains(start, []byte("pytorch")) || bytes.Contains(start, []byte("onnx")) || bytes.Contains(start, []byte("Constant")) || bytes.Contains(start, []byte("MatMul")))
}

func looksLikeText(start []byte) bool {
	for i := 0; i < 4 && len(start) > 0 && !utf8.Valid(start); i++ {
		start = start[:len(start)-1] // a character may be cut
	}
	return utf8.Valid(start) && !bytes.ContainsFunc(start, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != '\x1b' })
}

// text names a file of text. The oldest protocol of pickles is text, too.
func text(r io.ReaderAt, size int64, start []byte) error {
	if strings.ContainsRune("(cdl]}", rune(start[0])) && bytes.Contains(start, []byte("\n")) {
		if err := torch.Pickle(r, size, &container.File{}, ""); errors.As(err, new(*pickle.RefusedError)) {
			return err
		}
	}
	line, _, _ := strings.Cut(string(start), "\n")
	line = strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(line, "version https://git-lfs"):
		return hint.Add(errors.New("a pointer of Git LFS, not the file itself"), "git lfs pull fetches it")
	case strings.HasPrefix(line, "<"):
		return hint.Add(errors.New("a page of HTML or XML, which is not a dump of tensors"), "was it downloaded without logging in? "+Next)
	case tomlHeading.MatchString(line) && bytes.ContainsRune(start, '='):
		return hint.Add(errors.New("TOML, which is not a dump of tensors"), "a map is named by --map FILE; "+Next)
	case start[0] == '{' || start[0] == '[':
		return hint.Add(errors.New("JSON that is not a dump of tensors"), Next)
	}
	const most = 40
	if len(line) > most {
		line = line[:most] + "..."
	}
	return hint.Add(fmt.Errorf("plain text, which is not a dump of tensors; it begins with %q", line), Next)
}

// otherArchive is the error of a zip archive that is neither numpy's nor torch's.
func otherArchive(z *container.Zip) error {
	if len(z.Members) == 0 {
		return hint.Add(errors.New("an empty zip archive"), "did the run that wrote it save anything?")
	}
	kinds := map[string]int{}
	for _, m := range z.Members {
		kinds[path.Ext(m.Name)]++
	}
	first := plain.Quote(z.Members[0].Name)
	switch {
	case kinds[".py"] > 0:
		return hint.Add(fmt.Errorf("a zip of Python source, with %s", first), Next)
	case kinds[".class"] > 0:
		return hint.Add(fmt.Errorf("a zip of Java classes, with %s", first), Next)
	case kinds[".npy"] > 0, kinds[".npz"] > 0, kinds[".pt"] > 0, kinds[".safetensors"] > 0:
		return hint.Add(fmt.Errorf("a zip of files, with %s; some may be dumps", first), "unpack it, and name the folder")
	}
	return hint.Add(fmt.Errorf("a zip of %d files, with %s", len(z.Members), first), Next)
}
