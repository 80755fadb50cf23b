package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
)

// port is the weights of a port under the names and in the layouts of the original: a checkpoint of its own, with the original's
// configuration. What the file has as codes is there as the float32 that ggml makes of them; every other tensor is as the file has it.
type port struct {
	portRecord
	path     string // as the person named it
	ck       *checkpoint.Checkpoint
	codes    *checkpoint.Checkpoint // the steps and offsets of codes whose kernels need them; nil for none
	original *checkpoint.Checkpoint
	remove   string // a folder that goes when the port is closed; empty: it stays
}

// portRecord is what stands beside the weights that were read. It is written last: a folder without one is unfinished.
type portRecord struct {
	Digest string            `json:"digest"`           // of the weights that were written
	Steps  string            `json:"steps,omitempty"`  // of the steps and offsets that were; empty: there are none
	Told   capture.Port      `json:"told"`             // what is said of these weights by a trace that is made with them
	Across []string          `json:"across,omitempty"` // the weights of codes whose groups do not lie in their rows
	Counts weights.Counts    `json:"counts"`
	Stored map[string]string `json:"stored"`         // how the file has each tensor, by the original's name: "Q8_0", "F16"
	Coded  []string          `json:"coded"`          // those of them that are codes
	Cast   []string          `json:"cast"`           // what others were rounded to
	Head   string            `json:"head,omitempty"` // of a file with one of its own, where the model has one tensor for it and the embedding
}

const (
	portsFolder  = "ports"     // below the folder of traces
	portFile     = "port.json" // the record
	portVersion  = "5"         // changes when what is written does
	stepsFolder  = "steps"     // below the folder of a port: see [writeSteps]
	weightsFile  = "model.safetensors"
	maxPortFile  = 16 << 20
	maxPortFiles = 4096 // files of a folder of weights, each of which is hashed
)

// portHint is for what keeps the weights of a port from being used.
const portHint = "tracediff weights LOCAL --model DIR says what the file has; docs/weights.md has how a map names weights"

// openPort reads the weights of a port for the model that ck is of. What was read before is used again, while no file that it was made of
// has changed, and it is as it was written. dir is the folder of traces; where there is none, nothing is left behind.
func openPort(ctx context.Context, e *Env, s *Settings, dir string, ck *checkpoint.Checkpoint) (_ *port, err error) {
	p := &port{path: s.Weights, original: ck}
	if _, err := os.Stat(dir); err != nil {
		if dir, err = files.MkdirTemp("tracediff-*"); err != nil {
			return nil, err
		}
		p.remove = dir
	}
	defer func() {
		if err != nil {
			_ = p.Close() // nothing was written by it
			err = fmt.Errorf("--weights: %w", err)
		}
	}()
	model, done, err := onDisk(ck)
	if err != nil {
		return nil, err
	}
	defer done()
	m, err := s.readMap()
	if err != nil {
		return nil, err
	}
	local, original, sizes, err := openBoth(AskedWeights{Local: s.Weights, Model: model}, m)
	if err != nil {
		return nil, err
	}
	defer local.close()
	defer original.close()
	key, err := portKey(checkpoint.NewDigests(filepath.Join(dir, "digests.json")), local, model)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, portsFolder, portName(s.Weights)+"-"+key)
	if err = p.open(ctx, e, folder); err != nil && ctx.Err() == nil { // there is none, or what was kept is damaged
		if errors.Is(err, fs.ErrNotExist) { // else another run may have made it meanwhile
			err = nil
		} else {
			err = os.RemoveAll(folder)
		}
		if err == nil {
			err = makePort(ctx, e, folder, local, original, sizes, ck.Config())
		}
		if err == nil {
			err = p.open(ctx, e, folder)
		}
	}
	return p, err
}

// open opens weights that were read before. The error says what is wrong with what was kept.
func (p *port) open(ctx context.Context, e *Env, folder string) (err error) {
	if p.portRecord, err = readPort(folder); err != nil {
		return err
	}
	ck, err := checkpoint.Open(folder)
	if err != nil {
		return err
	}
	sum, err := weightsDigest(ctx, e, ck, ck.Scheme())
	if err == nil && sum != p.Digest {
		err = fmt.Errorf("%s is not what was written", filepath.Join(folder, weightsFile))
	}
	if err != nil {
		return hint.Also(err, ck.Close())
	}
	p.ck = ck
	return p.openSteps(ctx, e, filepath.Join(folder, stepsFolder))
}

// Close lets go of the weights of the port. The original's checkpoint is its caller's.
func (p *port) Close() error {
	if p == nil {
		return nil
	}
	var err error
	if p.ck != nil {
		err = p.ck.Close()
	}
	if p.codes != nil {
		err = hint.Also(err, p.codes.Close())
	}
	if p.remove != "" {
		err = hint.Also(err, os.RemoveAll(p.remove))
	}
	return err
}

// of is the checkpoint of a trace: the port's weights where it declares these, the original's where it says nothing. nil: it is of others.
func (p *port) of(t *capture.Trace) *checkpoint.Checkpoint {
	m := t.Manifest()
	switch {
	case knownDigest(m.Weights) && !hasOthers(p.ck, m.Weights), filepath.Base(m.Model) == filepath.Base(p.ck.Name()):
		return p.ck
	case othersThan(p.original, t) != "":
		return nil
	}
	return p.original
}

// isPort reports whether a checkpoint is the weights of a port that were read before.
func isPort(ck *checkpoint.Checkpoint) bool {
	_, err := os.Stat(filepath.Join(ck.Name(), portFile))
	return err == nil
}

// flaw is what keeps a comparison with the port's own weights from being complete: they are not the original's. Empty: they are.
func (p *port) flaw() string {
	if p == nil || p.Told.Wrong == "" {
		return ""
	}
	if p.Counts.Wrong == 0 {
		return fmt.Sprintf("the port's weights may not be the original's: %s; tracediff weights %s --model %s lists them", p.Told.Wrong, QuoteShell(p.path), QuoteShell(p.original.Name()))
	}
	return fmt.Sprintf("the port's weights are not the original's: %s; tracediff weights %s --model %s lists them", p.Told.Wrong, QuoteShell(p.path), QuoteShell(p.original.Name()))
}

// told is what a trace that is made with these weights says of them.
func (p *port) told() capture.Port {
	if p == nil {
		return capture.Port{}
	}
	return p.Told
}

// remark says with which weights the operations are verified.
func (p *port) remark() string {
	text := fmt.Sprintf("weights: operations are verified with those of %s: %d equal, %d cast, %d quantised", p.path, p.Counts.Equal, p.Counts.Cast, p.Counts.Quantised)
	if len(p.Coded) > 0 {
		text += " (" + strings.Join(p.Coded, ", ") + ")"
	}
	if p.Head != "" {
		text += "; the head is the file's own, " + p.Head
	}
	return text
}

// same reports that a model of a dtype has the original's numbers with the port's weights: there is nothing to tell apart.
func (p *port) same(dtype hooks.DType) bool {
	return p.Counts.Quantised+p.Counts.Rescaled+p.Counts.Wrong+p.Counts.Unidentified == 0 && !slices.ContainsFunc(p.Cast, func(to string) bool { return to != dtype.String() })
}

// labelled is what a reference is called: with the weights of the port where it was made of these.
func (p *port) labelled(label string, ref *capture.Trace) string {
	if p == nil || p.of(ref) != p.ck {
		return label
	}
	return label + ", with the weights of " + p.path
}

func isOrAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// onDisk is the folder of a checkpoint. An embedded one is written to a folder that done removes.
func onDisk(ck *checkpoint.Checkpoint) (dir string, done func(), err error) {
	name, embedded := strings.CutPrefix(ck.Name(), "fixtures/")
	if _, err := fs.Stat(fixtures.Files, name); !embedded || err != nil {
		return ck.Name(), func() {}, nil
	}
	if dir, err = files.MkdirTemp("tracediff-*"); err != nil {
		return "", nil, err
	}
	sub, err := fs.Sub(fixtures.Files, name)
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, name), sub)
	}
	done = func() { _ = os.RemoveAll(dir) } // of a folder of the system's
	if err != nil {
		done()
		return "", nil, err
	}
	return filepath.Join(dir, name), done, nil
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// portName is what a folder is called after a file.
func portName(path string) string {
	name := strings.Trim(unfit.ReplaceAllString(filepath.Base(path), "_"), "._-")
	return cmp.Or(name[:min(len(name), 64)], "port")
}

// portKey tells the weights of a port from any other: it depends on the content of the files of both sides, and on what the map made of
// their names and layouts.
func portKey(d checkpoint.Digests, local *openedWeights, model string) (string, error) {
	all := sha256.New()
	fmt.Fprintln(all, portVersion)
	for _, path := range []string{local.path, model} {
		names, err := filesOf(path)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			sum, err := d.File(name)
			if err != nil {
				return "", fmt.Errorf("hashing the weights: %w", err)
			}
			fmt.Fprintf(all, "%s %q\n", sum, filepath.Base(name))
		}
	}
	for i := range local.list {
		w := &local.list[i]
		fmt.Fprintf(all, "%q %q %v %v %q %v\n", w.Name, w.Key, w.Shape, w.DType, w.How, w.Folded)
	}
	return hex.EncodeToString(all.Sum(nil)[:8]), nil
}

// severalFiles are names of a part of a GGUF that was split, and of an index of shards.
var severalFiles = regexp.MustCompile(`(?i)-\d+-of-\d+\.[a-z]+$|\.index\.json$`)

// filesOf are the files that a checkpoint is read from, and those beside it.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if severalFiles.MatchString(filepath.Base(path)) { // its other parts lie beside it
			return filesOf(filepath.Dir(path))
		}
		list := []string{path}
		if beside := filepath.Join(filepath.Dir(path), checkpoint.ConfigFile); beside != path {
			if _, err := os.Stat(beside); err == nil {
				list = append(list, beside)
			}
		}
		return list, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			list = append(list, name)
		}
	}
	if len(list) > maxPortFiles {
		return nil, hint.Add(fmt.Errorf("%s has %d files, and %d are allowed beside weights", path, len(list), maxPortFiles), "name the file that has the weights")
	}
	return list, nil
}

// readPort reads the record of weights that were read before.
func readPort(folder string) (r portRecord, err error) {
	text, err := files.Read(filepath.Join(folder, portFile), maxPortFile)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", filepath.Join(folder, portFile), err)
	}
	return r, nil
}
