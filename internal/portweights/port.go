// Package portweights reads the weights of a port. It compares the weights with the original's, stores them under
// the original's names and in the original's layouts, and infers the kernels in which the engine multiplies
// quantised weights.
package portweights

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
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// Port holds the weights of a port under the names and in the layouts of the original model: a separate checkpoint
// with the original's configuration. Quantised tensors are dequantised to float32 as ggml does; all other tensors
// keep the file's values.
type Port struct {
	portRecord
	Path       string // as the person named it
	Checkpoint *checkpoint.Checkpoint
	codes      *checkpoint.Checkpoint // the steps and offsets of codes whose kernels need them; nil for none
	Original   *checkpoint.Checkpoint
	remove     string // a folder that goes when the port is closed; empty: it stays
}

// portRecord is the JSON file next to the converted weights. It is written last, so a folder without it is
// unfinished.
type portRecord struct {
	Digest string            `json:"digest"`           // of the weights that were written
	Steps  string            `json:"steps,omitempty"`  // of the original steps and offsets, or empty
	Told   capture.Port      `json:"told"`             // what is said of these weights by a trace that is made with them
	Across []string          `json:"across,omitempty"` // the weights of codes whose groups do not lie in their rows
	Counts weights.Counts    `json:"counts"`
	Stored map[string]string `json:"stored"`         // how the file has each tensor, by the original's name: "Q8_0", "F16"
	Coded  []string          `json:"coded"`          // those of them that are codes
	Cast   []string          `json:"cast"`           // what others were rounded to
	Head   string            `json:"head,omitempty"` // of a file with one of its own, where the model has one tensor for it and the embedding
}

const (
	portVersion  = "5"     // changes when what is written does
	stepsFolder  = "steps" // below the folder of a port: see [writeSteps]
	weightsFile  = "model.safetensors"
	maxPortFile  = 16 << 20
	maxPortFiles = 4096 // bounds the files of a folder of weights, since each file is hashed
)

// Hint is for what keeps the weights of a port from being used.
const Hint = "tracediff weights LOCAL --model DIR says what the file has; docs/weights.md says how a map names weights"

// Open reads the weights of a port for the model of ck. It uses the weights that an earlier call wrote to dir, the folder of traces, if
// these are unchanged and so are the files that they were read from. Without a folder of traces nothing is kept.
func Open(ctx context.Context, e *settings.Env, s *settings.Settings, dir string, ck *checkpoint.Checkpoint) (_ *Port, err error) {
	p := &Port{Path: s.Weights, Original: ck}
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
	model, done, err := origin.OnDisk(ck)
	if err != nil {
		return nil, err
	}
	defer done()
	m, err := s.ReadMap()
	if err != nil {
		return nil, err
	}
	both, err := openBoth(settings.AskedWeights{Local: s.Weights, Model: model}, m)
	if err != nil {
		return nil, err
	}
	defer both.close()
	key, err := portKey(checkpoint.NewDigests(filepath.Join(dir, "digests.json")), both.local, model)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, tracefolder.PortsFolder, portName(s.Weights)+"-"+key)
	if err = p.open(ctx, e, folder); err != nil && ctx.Err() == nil { // nothing was kept, or the kept weights are damaged
		if errors.Is(err, fs.ErrNotExist) { // else another run may have made it meanwhile
			err = nil
		} else {
			err = os.RemoveAll(folder)
		}
		if err == nil {
			err = makePort(ctx, e, folder, both, ck.Config())
		}
		if err == nil {
			err = p.open(ctx, e, folder)
		}
	}
	return p, err
}

// open opens the weights kept by an earlier call. The error describes the damage.
func (p *Port) open(ctx context.Context, e *settings.Env, folder string) (err error) {
	if p.portRecord, err = readPort(folder); err != nil {
		return err
	}
	if p.Checkpoint, err = opened(ctx, e, folder, p.Digest); err != nil || p.Steps == "" {
		return err
	}
	p.codes, err = opened(ctx, e, filepath.Join(folder, stepsFolder), p.Steps)
	return err
}

// opened opens a kept checkpoint, and checks its digest.
func opened(ctx context.Context, e *settings.Env, folder, digest string) (*checkpoint.Checkpoint, error) {
	ck, err := checkpoint.Open(folder)
	if err != nil {
		return nil, err
	}
	sum, err := origin.Digest(ctx, e, ck, ck.Scheme())
	if err == nil && sum != digest {
		err = fmt.Errorf("%s is not what was written", filepath.Join(folder, weightsFile))
	}
	if err != nil {
		return nil, hint.Also(err, ck.Close())
	}
	return ck, nil
}

// Close lets go of the weights of the port. The original's checkpoint is its caller's.
func (p *Port) Close() error {
	if p == nil {
		return nil
	}
	var err error
	if p.Checkpoint != nil {
		err = p.Checkpoint.Close()
	}
	if p.codes != nil {
		err = hint.Also(err, p.codes.Close())
	}
	if p.remove != "" {
		err = hint.Also(err, os.RemoveAll(p.remove))
	}
	return err
}

// Of returns the checkpoint of a trace: the port's if the trace declares the port's weights, the original's if the
// trace declares no weights, and nil if it declares different weights.
func (p *Port) Of(t *capture.Trace) *checkpoint.Checkpoint {
	m := t.Manifest()
	switch {
	case origin.KnownDigest(m.Weights) && !origin.HasOthers(p.Checkpoint, m.Weights), filepath.Base(m.Model) == filepath.Base(p.Checkpoint.Name()):
		return p.Checkpoint
	case origin.OthersThan(p.Original, t) != "":
		return nil
	}
	return p.Original
}

// Flaw returns why a comparison with the port's own weights is incomplete: the weights differ from the original's.
// It returns "" for right weights.
func (p *Port) Flaw() string {
	if p == nil || p.Told.Wrong == "" {
		return ""
	}
	if p.Counts.Wrong == 0 {
		return fmt.Sprintf("the port's weights may not be the original's: %s; tracediff weights %s --model %s lists them", p.Told.Wrong, plain.QuoteShell(p.Path), plain.QuoteShell(p.Original.Name()))
	}
	return fmt.Sprintf("the port's weights are not the original's: %s; tracediff weights %s --model %s lists them", p.Told.Wrong, plain.QuoteShell(p.Path), plain.QuoteShell(p.Original.Name()))
}

// ForManifest describes the weights in the manifest of a trace made with them.
func (p *Port) ForManifest() capture.Port {
	if p == nil {
		return capture.Port{}
	}
	return p.Told
}

// Remark says with which weights the operations are verified.
func (p *Port) Remark() string {
	text := fmt.Sprintf("weights: operations are verified with the weights of %s: %d equal, %d cast, %d quantised", p.Path, p.Counts.Equal, p.Counts.Cast, p.Counts.Quantised)
	if len(p.Coded) > 0 {
		text += " (" + strings.Join(p.Coded, ", ") + ")"
	}
	if p.Head != "" {
		text += "; the head is the file's own, " + p.Head
	}
	return text
}

// Same reports that a model of a dtype has the original's numbers with the port's weights: there is nothing to tell apart.
func (p *Port) Same(dtype hooks.DType) bool {
	return p.Counts.Quantised+p.Counts.Rescaled+p.Counts.Wrong+p.Counts.Unidentified == 0 && !slices.ContainsFunc(p.Cast, func(to string) bool { return to != dtype.String() })
}

// Labelled returns the label of a reference, with a remark for a reference made with the port's weights.
func (p *Port) Labelled(label string, ref *capture.Trace) string {
	if p == nil || p.Of(ref) != p.Checkpoint {
		return label
	}
	return label + ", with the weights of " + p.Path
}

func isOrAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
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

// filesOf returns the files of a checkpoint, including the other files of its folder.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if severalFiles.MatchString(filepath.Base(path)) { // its other parts lie in the same folder
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
		return nil, hint.Add(fmt.Errorf("%s has %d files, and %d are allowed in addition to weights", path, len(list), maxPortFiles), "name the file that has the weights")
	}
	return list, nil
}

// readPort reads the record of weights that were read before.
func readPort(folder string) (r portRecord, err error) {
	text, err := files.Read(filepath.Join(folder, tracefolder.PortFile), maxPortFile)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", filepath.Join(folder, tracefolder.PortFile), err)
	}
	return r, nil
}
