package ci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/hint"
)

// part is the report of one shard, and the path of the report file.
type part struct {
	*report.Document
	path string
}

// Merge reads the reports of all shards of a gate and returns the document of an undivided run. config is the path
// of the gate's file, as typed. A missing or repeated shard is an error, and so are shards of different gates.
func Merge(paths []string) (d *report.Document, config string, err error) {
	var parts []part
	for _, path := range paths {
		d, err := readShard(path)
		if err != nil {
			return nil, "", advice.OnPath(path, err)
		}
		parts = append(parts, part{d, path})
	}
	for _, p := range parts[1:] {
		if err := alike(parts[0], p); err != nil {
			return nil, "", err
		}
	}
	first := parts[0].Shard
	by, err := place(parts)
	if err != nil {
		return nil, "", err
	}
	if err := oneOfEach(parts); err != nil {
		return nil, "", err
	}
	var runs []report.Run
	for i := range first.Prompts {
		runs = append(runs, by[i%first.Of].Runs[i/first.Of])
	}
	return report.NewDocument(parts[0].Tool.Version, runs...).WithWeights(weightsOf(parts)), first.Config, nil
}

// weightsOf returns the comparison of the port's weights. Every shard makes the same comparison; a failed one is
// preferred.
func weightsOf(parts []part) *weights.Result {
	var r *weights.Result
	for _, p := range parts {
		if w := p.Weights; w != nil && (r == nil || r.Right()) {
			r = w
		}
	}
	return r
}

const reportHint = "merge reads what tracediff gate --shard I/N --report json=FILE writes"

// readShard reads a report and checks that it is the report of a shard.
func readShard(path string) (*report.Document, error) {
	text, err := files.Read(path, maxReport)
	if err != nil {
		return nil, hint.Add(err, reportHint)
	}
	var format struct {
		Schema string `json:"schema"`
	}
	begin := json.NewDecoder(bytes.NewReader(text))
	if err := begin.Decode(&format); err != nil {
		return nil, hint.Add(fmt.Errorf("the JSON document is not complete: %w", err), reportHint)
	}
	switch {
	case format.Schema == report.RecordSchema:
		return nil, hint.Add(fmt.Errorf("it is JSON Lines (%s), want the JSON document", format.Schema), reportHint)
	case format.Schema != report.Schema:
		return nil, hint.Add(fmt.Errorf("its format is %q, want %q", format.Schema, report.Schema), "make it again with this version: "+reportHint)
	}
	d := &report.Document{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(d); err != nil {
		return nil, hint.Add(fmt.Errorf("it has fields that this version does not know: %w", err), "merge with the version that made it, "+d.Tool.Version)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, hint.Add(errors.New("more than one JSON document"), reportHint)
	}
	return d, hint.Add(checkShard(d), reportHint)
}

// checkShard rejects reports no gate could have written: an edited or hand-made report must not pass a gate.
func checkShard(d *report.Document) error {
	s := d.Shard
	if s == nil {
		return errors.New("it is not the report of a shard")
	}
	if s.Of < 1 || s.Index < 0 || s.Index >= s.Of || s.Of > len(s.Prompts) || len(s.Prompts) > gatefile.MaxPrompts {
		return fmt.Errorf("there is no shard %s of %d prompts", s, len(s.Prompts))
	}
	if sorted := slices.Sorted(slices.Values(s.Prompts)); len(slices.Compact(sorted)) < len(s.Prompts) {
		return errors.New("two of its prompts have the same name")
	}
	var have []string
	worst := 0
	if d.Weights != nil {
		worst = report.WeightsExit(d.Weights)
	}
	for _, r := range d.Runs {
		have = append(have, r.Name)
		exit := 2
		if r.Result != nil {
			exit = r.Result.ExitCode()
		}
		if r.Exit != exit || (r.Result == nil) != (r.Error != "") {
			return fmt.Errorf("prompt %q: its exit status is %d, but its results give a different status", r.Name, r.Exit)
		}
		if r.Result != nil {
			if err := r.Result.Contradiction(); err != nil {
				return fmt.Errorf("prompt %q: %w", r.Name, err)
			}
		}
		worst = max(worst, exit)
	}
	if want := s.Own(); !slices.Equal(have, want) {
		return fmt.Errorf("shard %s runs %s, but the report has %s", s, strings.Join(want, ", "), strings.Join(have, ", "))
	}
	if d.Exit != worst {
		return fmt.Errorf("its exit status is %d, but its prompts give %d", d.Exit, worst)
	}
	return nil
}

// alike reports how the gates of two shards differ.
func alike(a, b part) error {
	differ := func(what string, x, y any) error {
		return hint.Add(fmt.Errorf("%s differs: %v in %s, %v in %s", what, x, a.path, y, b.path), "merge takes the shards of one gate: run them all with one version, one file and the same flags")
	}
	s, t := a.Shard, b.Shard
	switch {
	case a.Tool != b.Tool:
		return differ("the version of tracediff", a.Tool.Version, b.Tool.Version)
	case s.Of != t.Of:
		return differ("the number of shards", s.Of, t.Of)
	case !slices.Equal(s.Prompts, t.Prompts):
		return differ("the list of prompts", strings.Join(s.Prompts, ", "), strings.Join(t.Prompts, ", "))
	case s.Config != t.Config:
		return differ("--config", s.Config, t.Config)
	}
	keys := maps.Clone(s.Settings)
	maps.Copy(keys, t.Settings)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if s.Settings[key] != t.Settings[key] {
			return differ(key, said(s.Settings, key), said(t.Settings, key))
		}
	}
	return nil
}

func said(settings map[string]string, key string) string {
	if text, ok := settings[key]; ok {
		return text
	}
	return "not set"
}

// place sorts the shards by index. A missing or repeated shard is an error.
func place(parts []part) ([]part, error) {
	of := parts[0].Shard.Of
	by := make([]part, of)
	for _, p := range parts {
		if was := by[p.Shard.Index]; was.Document != nil {
			return nil, hint.Add(fmt.Errorf("shard %s was given twice: %s and %s", p.Shard, was.path, p.path), "give the report of each shard once")
		}
		by[p.Shard.Index] = p
	}
	var missing []string
	for i, p := range by {
		if p.Document == nil {
			missing = append(missing, fmt.Sprintf("%d/%d", i, of))
		}
	}
	switch {
	case len(missing) == 1:
		return nil, hint.Add(fmt.Errorf("shard %s is missing", missing[0]), "run it: tracediff gate --shard "+missing[0]+", with the flags of the others")
	case len(missing) > 1:
		return nil, hint.Add(fmt.Errorf("shards %s are missing", strings.Join(missing, ", ")), "run them: tracediff gate --shard "+missing[0]+", with the flags of the others")
	}
	return by, nil
}

// oneOfEach reports shards with the same settings but different inputs: other weights at a model's path, another
// build of the port, or references from another version of transformers.
func oneOfEach(parts []part) error {
	type seen struct {
		text string
		from part
		name string
	}
	first := map[string]seen{}
	for _, p := range parts {
		for _, r := range p.Runs {
			if r.Result == nil {
				continue
			}
			// The model is the model in the settings: a trace may declare a different one.
			model := p.Shard.Settings[fmt.Sprintf("prompt %q: model", r.Name)]
			local, ref := &r.Result.Local, &r.Result.Reference
			for _, fact := range [][2]string{
				{"the digest of the weights of your port", known(local.Weights)},
				{"the digest of the weights of the reference", known(ref.Weights)},
				{"the program that made your port's trace", madeBy(local.Producer)},
				{"the program that made the reference (" + ref.Label + ")", madeBy(ref.Producer)},
			} {
				what, text := fact[0], fact[1]
				was, ok := first[what+model]
				if !ok && text != "" {
					first[what+model] = seen{text, p, r.Name}
				}
				if ok && text != "" && was.text != text && was.from.path != p.path {
					return hint.Add(fmt.Errorf("%s differs: %s for prompt %q in %s, %s for prompt %q in %s", what, was.text, was.name, was.from.path, text, r.Name, p.path),
						"run all shards on the same checkpoints, with the same port and references of the same transformers")
				}
			}
		}
	}
	return nil
}

// known returns a digest of weights, or "" for an unknown digest.
func known(digest string) string {
	if digest == "unknown" {
		return ""
	}
	return digest
}

// madeBy is what made a trace, without the machine that it ran on.
func madeBy(p capture.Producer) string { return strings.TrimSpace(p.Name + " " + p.Version) }
