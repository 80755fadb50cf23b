// Package ci supports a gate in continuous integration. It proposes prompts, divides a gate into shards, merges the
// reports of the shards, and records accepted divergences in a baseline.
package ci

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
)

// ParseShard reads I/N: the shard I, from 0, of N.
func ParseShard(text string) (*report.Shard, error) {
	s := &report.Shard{}
	n, err := fmt.Sscanf(text, "%d/%d", &s.Index, &s.Of)
	const next = "want I/N: 0/4 is the first of four shards, 3/4 the last"
	switch {
	case err != nil || n != 2 || text != s.String():
		return nil, hint.Add(fmt.Errorf("--shard is %q", text), next)
	case s.Of < 1 || s.Index < 0 || s.Index >= s.Of:
		return nil, hint.Add(fmt.Errorf("--shard %s: there is no such shard: shards are counted from 0", text), next)
	}
	return s, nil
}

// Divide returns the prompts of a gate for one shard, and records the whole gate in the shard. flags are the flags
// with an effect on the findings of a comparison. config is the path of the gate's file, as typed.
func Divide(s *report.Shard, config string, all []gatefile.Named, limits *gate.Limits, flags map[string]string) ([]gatefile.Named, error) {
	if s.Of > len(all) {
		return nil, hint.Add(fmt.Errorf("--shard %s: the gate has %s, and a shard would have none", s, amount.Of(len(all), "prompt")), "take at most "+amount.Of(len(all), "shard"))
	}
	s.Config, s.Settings = filepath.ToSlash(config), map[string]string{}
	for flag, value := range flags {
		s.Settings["--"+flag] = value
	}
	text, err := json.Marshal(limits)
	if err != nil {
		return nil, err
	}
	s.Settings["tolerances"] = string(text)
	folder := gatefile.Here()
	var own []gatefile.Named
	for i, n := range all {
		s.Prompts = append(s.Prompts, n.Name)
		if i%s.Of == s.Index {
			own = append(own, n)
		}
		if err := describe(&n, s.Settings, folder); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// describe adds the settings of a prompt to the settings of a shard. The Python interpreter is left out, since its
// path may differ between machines.
func describe(n *gatefile.Named, into map[string]string, folder string) error {
	s := n.Settings
	s.Python, s.Local.Folder, s.Reference.Folder = "", "", ""
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return err
	}
	if n.Table != nil {
		into[fmt.Sprintf("prompt %q: map", n.Name)] = n.Table.String()
	}
	for key, value := range keys {
		into[fmt.Sprintf("prompt %q: %s", n.Name, key)] = gatefile.Below(string(value), folder)
	}
	into[fmt.Sprintf("prompt %q: require_certified", n.Name)] = fmt.Sprint(n.RequireCertified)
	return nil
}

// Portable makes the paths in a run relative to the working directory, and replaces the folder of traces by
// [settings.DefaultDir]. Reports of one gate are then equal for every checkout, machine and shard.
func Portable(r report.Run, dir string) report.Run {
	folder, sep := gatefile.Here(), string(filepath.Separator)
	if dir = strings.TrimRight(dir, sep); filepath.Clean(dir) == settings.DefaultDir {
		dir = ""
	}
	rewrite(reflect.ValueOf(&r).Elem(), func(s string) string {
		if dir != "" {
			s = strings.ReplaceAll(s, " --dir "+plain.QuoteShell(dir), "")
			s = gatefile.Elsewhere(s, filepath.Clean(dir)+sep, settings.DefaultDir+sep)
		}
		return gatefile.Below(s, folder)
	})
	return r
}

// rewrite changes every text of a value that is exported: what a report writes. What two places share is changed once and is the same
// for both, as a relative path is not changed again.
func rewrite(v reflect.Value, change func(string) string) {
	switch v.Kind() {
	case reflect.String:
		if was := v.String(); v.CanSet() {
			if now := change(was); now != was {
				v.SetString(now)
			}
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Kind() == reflect.Pointer {
			rewrite(v.Elem(), change)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				rewrite(v.Field(i), change)
			}
		}
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k >= reflect.Bool && k <= reflect.Complex128 {
			return // numbers
		}
		for i := range v.Len() {
			rewrite(v.Index(i), change)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := v.MapIndex(key)
			if value.Kind() != reflect.String {
				continue
			}
			if now := change(value.String()); now != value.String() {
				v.SetMapIndex(key, reflect.ValueOf(now).Convert(v.Type().Elem()))
			}
		}
	}
}
