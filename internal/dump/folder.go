package dump

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/internal/tracekey"
)

const (
	// maxFiles bounds the files of a folder: some thousand tensors of a dozen passes. Each costs some 3 KB and 20 µs.
	maxFiles = 25_000
	// maxDepth bounds folders in folders.
	maxDepth = 4
	// maxIndex bounds the index of a sharded file, in bytes.
	maxIndex = 64 << 20
)

// Dir is an open folder of dumps.
type Dir struct {
	Path    string
	Members []*Member
	Others  []string // files that are no dumps, by their paths
	file    *container.File
	why     string // what the first of them is
}

// Member is one dump of a folder.
type Member struct {
	Path    string // below the folder, with slashes
	Tensors []container.Tensor
	Whole   bool // it is one tensor without a name of its own
	pass    int  // −1: unknown
	stem    string
}

// OpenDir opens all dumps below a folder. A file with the extension of a dump and other content is an error; other files are listed.
func OpenDir(path string) (*Dir, error) {
	names, err := list(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path, file: &container.File{Format: "folder"}}
	if index := indexOf(path, names); index != "" {
		f, err := Sharded(index)
		if err != nil {
			return nil, err
		}
		d.file, d.Members = f, []*Member{{Path: filepath.Base(index), Tensors: f.Tensors}}
		f.Tensors = nil
		return d, nil
	}
	pool := &pool{}
	d.file.Own(pool)
	if err := d.open(pool, names); err != nil {
		return nil, hint.Also(err, d.file.Close())
	}
	return d, nil
}

// File lists the folder's tensors, and closes their files.
func (d *Dir) File() *container.File { return d.file }

// list names the files below a folder, with slashes, sorted. Hidden ones are left out.
func list(folder string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil || rel == "." {
			return err
		}
		name := filepath.ToSlash(rel)
		switch {
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			if strings.Count(name, "/") >= maxDepth {
				return hint.Add(fmt.Errorf("%s: folders are nested more than %d deep", path, maxDepth), "name the folder that has the dump")
			}
			return nil
		}
		if names = append(names, name); len(names) > maxFiles {
			return hint.Add(fmt.Errorf("%s: more than %d files", folder, maxFiles), "name the folder that has the dump; for a dump of many passes, the folder of some passes")
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// oneTensor is the name of a tensor that fills its file.
const oneTensor = "\x00"

func (d *Dir) open(pool *pool, names []string) error {
	for _, name := range names {
		r, err := pool.add(filepath.Join(d.Path, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		in := &container.File{}
		d.file.Own(in)
		if err := Read(r, r.size(), in, oneTensor); err != nil {
			if hasExtension(name) {
				return fmt.Errorf("%s: %w", filepath.Join(d.Path, filepath.FromSlash(name)), err)
			}
			if d.Others = append(d.Others, name); d.why == "" {
				d.why = fmt.Sprintf("%s is %v", plain.Quote(name), err)
			}
			continue
		}
		for _, n := range in.Notes {
			d.file.Note("%s: %s", name, n)
		}
		d.Members = append(d.Members, &Member{Path: name, Tensors: in.Tensors, Whole: len(in.Tensors) == 1 && in.Tensors[0].Name == oneTensor})
	}
	if len(d.Members) == 0 {
		err := fmt.Errorf("%s has no dump of tensors", d.Path)
		if d.why != "" {
			err = fmt.Errorf("%w: %s", err, d.why)
		}
		return hint.Add(err, Next)
	}
	return d.isDump()
}

// weightFile matches the files of weights in the folder of a model.
var weightFile = regexp.MustCompile(`^(pytorch_)?model(-[0-9]+-of-[0-9]+)?\.(safetensors|bin)$`)

// isDump returns an error for the folder of a model: config.json and files of weights only.
func (d *Dir) isDump() error {
	if slices.ContainsFunc(d.Members, func(m *Member) bool { return !weightFile.MatchString(m.Path) }) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(d.Path, "config.json")); err != nil {
		return nil
	}
	return hint.Add(fmt.Errorf("%s is the folder of a model, with its weights", d.Path), "give a trace, or a dump of its tensors, and the folder as --model")
}

// Name gives the tensors the names of their files. A file of one tensor gives its path, a/b.npy as "a.b". Files of several tensors whose names
// differ only in a number are passes, "step_0.npz" and "step_1.npz", unless the number counts ranks or layers, as in "rank0.npz". Other files
// are parts of one run, told apart by the file's name; passes stay in front. A folder "pass<k>" has the tensors of a pass. Files that are not
// dumps are noted.
func (d *Dir) Name() error {
	f := d.file
	if len(d.Others) > 0 {
		f.Note("%d files left out that are not dumps: %s", len(d.Others), d.why)
	}
	if err := passes(f, d.Members); err != nil {
		return fmt.Errorf("%s: %w", d.Path, err)
	}
	return gather(f, d.Members, d.Path)
}

func hasExtension(name string) bool {
	return slices.ContainsFunc(extensions, func(e string) bool { return strings.HasSuffix(name, e) })
}

// numbered matches a name with one number that can count passes: "step_3", "Pass00001", "0", "run/pass2".
var numbered = regexp.MustCompile(`^(?:(.*?)[._-]?)(\d+)$`)

// ofNoPass are names whose number is that of a rank, a stage, a layer or an expert: "rank", "run/tp", "my_layer". Such a file has a part of a run.
var ofNoPass = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:` + spelling.PartWords + `)$`)

// passes finds out which files of several tensors are passes of one run.
func passes(f *container.File, all []*Member) error {
	var several []*Member
	for _, m := range all {
		m.pass, m.stem = -1, stem(m.Path)
		if dir := filepath.ToSlash(filepath.Dir(m.Path)); dir != "." {
			m.stem = dir + "/" + m.stem
		}
		if !m.Whole {
			several = append(several, m)
		}
	}
	if len(several) < 2 {
		return nil
	}
	var numbers []int
	of := map[int]*Member{}
	for _, m := range several {
		parts := numbered.FindStringSubmatch(m.stem)
		if parts == nil || parts[1] != numberedStem(several[0].stem) || ofNoPass.MatchString(parts[1]) {
			return nil // parts of one run
		}
		n, err := strconv.Atoi(parts[2])
		if err != nil || of[n] != nil {
			return fmt.Errorf("%s and another file have the same number", plain.Quote(m.Path))
		}
		of[n] = m
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	first := numbers[0]
	for i, n := range numbers {
		if first > 1 || n != first+i {
			return hint.Add(fmt.Errorf("passes are numbered %d to %d in the names of its files, but %d is missing", first, numbers[len(numbers)-1], max(0, missing(numbers))),
				"a run begins with pass 0, or 1, and has all passes up to its last")
		}
		of[n].pass = i
	}
	f.Note("each of its %d files is a pass, %s is pass 0", len(several), plain.Quote(of[first].Path))
	return nil
}

// missing is the first number that a run of passes does not have.
func missing(numbers []int) int {
	if numbers[0] > 1 {
		return 0
	}
	for i, n := range numbers {
		if n != numbers[0]+i {
			return numbers[0] + i
		}
	}
	return 0
}

func numberedStem(stem string) string {
	if parts := numbered.FindStringSubmatch(stem); parts != nil {
		return parts[1]
	}
	return "\x00"
}

// passFolder is a folder that has the tensors of a pass.
var passFolder = regexp.MustCompile(`^(` + tracekey.PassPattern + `)(.+)$`)

// gather names the tensors of all files.
func gather(f *container.File, all []*Member, folder string) error {
	several := 0
	for _, m := range all {
		if !m.Whole {
			several++
		}
	}
	from := map[string]string{}
	for _, m := range all {
		prefix := ""
		if parts := passFolder.FindStringSubmatch(m.stem); parts != nil {
			if pass, _, found := tracekey.CutPass(m.stem); !found || pass > 0 {
				prefix = parts[1]
			}
			m.stem = parts[2]
		}
		stem := strings.ReplaceAll(m.stem, "/", ".")
		for _, t := range m.Tensors {
			switch {
			case m.Whole:
				t.Name = prefix + stem
			case m.pass > 0:
				t.Name = tracekey.Key{Pass: m.pass, Name: t.Name}.String()
			case m.pass < 0 && several > 1:
				if parts := passFolder.FindStringSubmatch(t.Name); prefix == "" && parts != nil { // of a file that has several passes
					t.Name = parts[1] + stem + "." + parts[2]
				} else {
					t.Name = prefix + stem + "." + t.Name
				}
			default:
				t.Name = prefix + t.Name
			}
			if other, twice := from[t.Name]; twice {
				return fmt.Errorf("%s: %s and %s both have the tensor %s", folder, other, m.Path, plain.Quote(t.Name))
			}
			from[t.Name] = m.Path
			f.Tensors = append(f.Tensors, t)
		}
	}
	if several > 1 && all[0].pass < 0 && !slices.ContainsFunc(all, func(m *Member) bool { return m.pass >= 0 }) {
		f.Note("the names of its tensors begin with the names of their files")
	}
	slices.SortStableFunc(f.Tensors, func(a, b container.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// index is the index file of sharded safetensors: the shard of each tensor.
type index struct {
	Map map[string]string `json:"weight_map"`
}

// indexOf returns the path of the index of shards in a folder, or "" without an index.
func indexOf(folder string, names []string) string {
	for _, name := range names {
		if strings.HasSuffix(name, ".index.json") && !strings.Contains(name, "/") {
			return filepath.Join(folder, name)
		}
	}
	return ""
}

// isIndex reports whether a file begins as an index of shards does.
func isIndex(start []byte) bool {
	return strings.HasPrefix(strings.TrimSpace(string(start)), "{") && strings.Contains(string(start), `"weight_map"`)
}

// Sharded opens a safetensors file in shards by its index. Every tensor has to be in the shard that the index names, and in no
// other.
func Sharded(path string) (*container.File, error) {
	data, err := files.Read(path, maxIndex)
	if err != nil {
		return nil, err
	}
	var x index
	if err := json.Unmarshal(data, &x); err != nil || len(x.Map) == 0 {
		return nil, fmt.Errorf("%s: an index without a weight_map of names", path)
	}
	f, pool := &container.File{Format: "safetensors in shards"}, &pool{}
	f.Own(pool)
	if err := x.open(f, pool, filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, hint.Also(err, f.Close()))
	}
	return f, nil
}

func (x index) open(f *container.File, pool *pool, folder string) error {
	shards := map[string]bool{}
	for _, name := range x.Map {
		shards[name] = true
	}
	names := make([]string, 0, len(shards))
	for name := range shards {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != filepath.Base(name) {
			return fmt.Errorf("shard %s is not in the folder of the index", plain.Quote(name))
		}
		r, err := pool.add(filepath.Join(folder, name))
		if errors.Is(err, os.ErrNotExist) {
			return hint.Add(fmt.Errorf("shard %s is not there", plain.Quote(name)), "an index names the files of one folder: copy all of them")
		} else if err != nil {
			return err
		}
		in := &container.File{}
		if err := Read(r, r.size(), in, stem(name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, t := range in.Tensors {
			if x.Map[t.Name] != name {
				return fmt.Errorf("shard %s has tensor %s, which the index has elsewhere or not at all", plain.Quote(name), plain.Quote(t.Name))
			}
			f.Tensors = append(f.Tensors, t)
		}
	}
	if len(f.Tensors) != len(x.Map) {
		return fmt.Errorf("the index names %d tensors, but the shards have %d", len(x.Map), len(f.Tensors))
	}
	return nil
}
