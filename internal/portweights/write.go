package portweights

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

// makePort compares the weights of a port with the original's, and writes them under the original's names. The folder appears whole or not
// at all; older ones of the same file go.
func makePort(ctx context.Context, e *settings.Env, folder string, both *bothWeights, config []byte) error {
	local, original, sizes := both.local, both.original, both.sizes
	list, missing, err := weights.Sources(local.side(), original.side())
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return lacking(local.path, missing, len(list))
	}
	const mega = 1e6
	p := e.Begin("comparing the port's weights", "MB", nil)
	result, err := weights.Compare(ctx, local.side(), original.side(), weights.Options{
		Hidden: sizes["e"], HeadDim: sizes["d"], Rotary: rotaryOf(config), Progress: func(done, all int64) { p.Step(0, 1, int(done/mega), max(1, int(all/mega))) },
	})
	p.Done()
	if err != nil {
		return err
	}
	head := result.OwnHead()
	if s, ok := weights.HeadSource(local.side(), original.side(), head); ok {
		list = append(list, s)
	}
	r := record(local.path, result, list)
	tmp, release, err := tracefolder.MakeRunFolder(filepath.Dir(folder), "new-", ".tmp")
	if err != nil {
		return hint.Add(fmt.Errorf("keeping the port's weights: %w", err), "--dir names a folder that can be written to")
	}
	defer release()
	defer os.RemoveAll(tmp)
	if err := writePort(ctx, e, tmp, list, config, r); err != nil {
		return fmt.Errorf("keeping the port's weights: %w", err)
	}
	if err := os.Rename(tmp, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(filepath.Join(folder, tracefolder.PortFile)); there != nil { // else another run has made it meanwhile
			return fmt.Errorf("keeping the port's weights: %w", err)
		}
	}
	return removeOlder(folder)
}

// removeOlder removes the conversions of earlier contents of the same file. Each conversion is as large as the
// model in float32.
func removeOlder(folder string) error {
	name := filepath.Base(folder)
	stem := name[:strings.LastIndexByte(name, '-')+1]
	entries, err := os.ReadDir(filepath.Dir(folder))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if key, ok := strings.CutPrefix(e.Name(), stem); ok && e.Name() != name && len(key) == len(name)-len(stem) && e.IsDir() {
			if err := os.RemoveAll(filepath.Join(filepath.Dir(folder), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// lacking is the error of weights that the port's file does not have. The original's never stand in for them.
func lacking(path string, missing []string, found int) error {
	const most = 4
	names := amount.Some(missing, most)
	err := fmt.Errorf("%s has no tensor for %s", path, names)
	if found == 0 {
		err = fmt.Errorf("%s has no tensor of the original: none for %s", path, names)
	}
	return hint.Add(err, "a line of the table [weights] of --map FILE says what the file calls it; "+Hint)
}

// record is what is kept of a comparison of weights.
func record(path string, result *weights.Result, list []weights.Source) portRecord {
	r := portRecord{Told: capture.Port{File: filepath.Base(path)}, Counts: result.Counts, Stored: map[string]string{}, Coded: []string{}, Cast: []string{}}
	if len(result.Findings) > 0 {
		f := result.Findings[0]
		r.Told.Wrong = fmt.Sprintf("%s wrong, first %s: %s", isOrAre(r.Counts.Wrong, "tensor"), f.Tensor, f.What)
		if r.Counts.Wrong == 0 {
			r.Told.Wrong = fmt.Sprintf("%s UNIDENTIFIED, first %s: %s", isOrAre(r.Counts.Unidentified, "tensor"), f.Tensor, f.What)
		}
	} else if !result.Right() {
		r.Told.Wrong = weights.NothingCompared
	}
	for _, s := range list {
		t := s.Parts[0].Local
		if t.Codes() == "" {
			r.Stored[s.Original.Name] = t.DType.Safetensors()
			continue
		}
		if r.Stored[s.Original.Name] = t.Codes(); !slices.Contains(r.Coded, t.Codes()) {
			r.Coded = append(r.Coded, t.Codes())
		}
	}
	r.Head = result.OwnHead()
	for i := range result.Tensors {
		if t := &result.Tensors[i]; t.Class == weights.Cast && !slices.Contains(r.Cast, t.Rounding) {
			r.Cast = append(r.Cast, t.Rounding)
		}
	}
	slices.Sort(r.Coded)
	return r
}

// writePort writes a checkpoint as Hugging Face does, and the record.
func writePort(ctx context.Context, e *settings.Env, dir string, list []weights.Source, config []byte, r portRecord) error {
	if err := os.WriteFile(filepath.Join(dir, checkpoint.ConfigFile), config, 0o666); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, weightsFile))
	if err != nil {
		return err
	}
	w := &portWriter{to: bufio.NewWriterSize(f, 1<<20), p: e.Begin("writing the port's weights", "MB", nil)}
	err = w.write(ctx, list)
	w.p.Done()
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if r.Digest, err = digestIn(ctx, e, dir); err != nil {
		return err
	}
	if err := writeSteps(ctx, e, filepath.Join(dir, stepsFolder), list, config, &r); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, tracefolder.PortFile), append(text, '\n'), 0o666)
}

// digestIn is the digest of the weights in a folder.
func digestIn(ctx context.Context, e *settings.Env, dir string) (string, error) {
	ck, err := checkpoint.Open(dir)
	if err != nil {
		return "", err
	}
	sum, err := origin.Digest(ctx, e, ck, ck.Scheme())
	return sum, hint.Also(err, ck.Close())
}

// portWriter writes tensors piece by piece.
type portWriter struct {
	to        *bufio.Writer
	p         settings.Progress
	all, done int64
	raw, out  []byte
	numbers   []float64
}

// storedAs returns the dtype for writing a tensor of a port: its own if the elements are unchanged, and otherwise
// float32.
func storedAs(s weights.Source) hooks.DType {
	d := s.Parts[0].Local.DType
	for _, p := range s.Parts {
		if p.Local.Add != 0 || p.Local.DType != d {
			return hooks.F32
		}
	}
	return d
}

// write writes the whole file: the tensors in the order of the original.
func (w *portWriter) write(ctx context.Context, list []weights.Source) error {
	header := newHeader()
	for _, s := range list {
		shape := slices.Clone(s.Parts[0].Taken())
		for _, p := range s.Parts[1:] {
			if own := p.Taken(); len(own) == len(shape) && len(shape) > 0 && slices.Equal(own[1:], shape[1:]) {
				shape[0] += own[0]
				continue
			}
			return fmt.Errorf("%s and the others of %s have shapes that do not fit", p.Local.Name, s.Original.Name)
		}
		n, ok := hooks.Elements(shape)
		if !ok {
			return fmt.Errorf("%s has more elements than a file can hold", s.Original.Name)
		}
		d := storedAs(s)
		size := int64(n) * int64(d.Size())
		header.add(s.Original.Name, d, shape, w.all, w.all+size)
		w.all += size
	}
	if err := header.write(w.to); err != nil {
		return err
	}
	for _, s := range list {
		for _, p := range s.Parts {
			if err := w.part(ctx, p, storedAs(s)); err != nil {
				return fmt.Errorf("reading %s: %w", p.Local.Name, err)
			}
		}
	}
	return w.to.Flush()
}

// header is that of a safetensors file.
type header map[string]any

func newHeader() header {
	return header{"__metadata__": map[string]string{"format": "pt"}}
}

func (h header) add(name string, d hooks.DType, shape []int, from, to int64) {
	h[name] = struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}{d.Safetensors(), shape, [2]int64{from, to}}
}

// write writes the header, and its length before it.
func (h header) write(to io.Writer) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	text = append(text, strings.Repeat(" ", (8-len(text)%8)%8)...)
	if err := binary.Write(to, binary.LittleEndian, uint64(len(text))); err != nil {
		return err
	}
	_, err = to.Write(text)
	return err
}

// part writes one tensor, or the first rows of it.
func (w *portWriter) part(ctx context.Context, p weights.Part, to hooks.DType) error {
	t := p.Local
	if t.Unknown != "" || !t.DType.Valid() {
		return fmt.Errorf("its format is not read: %s", t.Unknown)
	}
	n, _ := hooks.Elements(p.Taken())
	const most = 1 << 18
	size := t.DType.Size()
	for at := 0; at < n; at += most {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := min(most, n-at)
		w.raw = slices.Grow(w.raw[:0], m*size)[:m*size]
		if got, err := t.Data.ReadAt(w.raw, int64(at)*int64(size)); got < len(w.raw) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		out := w.raw
		if t.DType != to || t.Add != 0 {
			w.numbers = slices.Grow(w.numbers[:0], m)[:m]
			if err := floats.Decode(w.numbers, t.DType, w.raw); err != nil {
				return err
			}
			for i := range w.numbers {
				w.numbers[i] -= t.Add
			}
			w.out = floats.Append(w.out[:0], hooks.F32, w.numbers...)
			out = w.out
		}
		if _, err := w.to.Write(out); err != nil {
			return err
		}
		const mega = 1e6
		w.done += int64(m * to.Size())
		w.p.Step(0, 1, int(w.done/mega), max(1, int(w.all/mega)))
	}
	return nil
}
