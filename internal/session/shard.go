package session

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/hint"
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

// Divide leaves of the prompts of a gate those that a shard runs, and says in the shard what the whole is. flags are those that
// change what a comparison finds. config is the file's path as it was typed.
func Divide(s *report.Shard, config string, all []Named, limits *gate.Limits, flags map[string]string) ([]Named, error) {
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
	folder := here()
	var own []Named
	for i, n := range all {
		s.Prompts = append(s.Prompts, n.Name)
		if i%s.Of == s.Index {
			own = append(own, n)
		}
		if err := n.describe(s.Settings, folder); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// describe adds what decides about a prompt to settings. Python is not one of it: two machines have it at different places.
func (n Named) describe(settings map[string]string, folder string) error {
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
	if n.table != nil {
		settings[fmt.Sprintf("prompt %q: map", n.Name)] = n.table.String()
	}
	for key, value := range keys {
		settings[fmt.Sprintf("prompt %q: %s", n.Name, key)] = below(string(value), folder)
	}
	settings[fmt.Sprintf("prompt %q: require_certified", n.Name)] = fmt.Sprint(n.RequireCertified)
	return nil
}

// here is the working directory; empty where that is not known, or is the root, below which everything is.
func here() string {
	folder, err := os.Getwd()
	if err != nil || filepath.Dir(folder) == folder {
		return ""
	}
	return folder
}

// Portable writes the paths below the working directory as relative to it, and the folder of traces as [DefaultDir], wherever they
// stand in a run: the same gate says the same in another checkout, on another machine, and beside other shards on one.
func Portable(r report.Run, dir string) report.Run {
	folder, sep := here(), string(filepath.Separator)
	if dir = strings.TrimRight(dir, sep); filepath.Clean(dir) == DefaultDir {
		dir = ""
	}
	rewrite(reflect.ValueOf(&r).Elem(), func(s string) string {
		if dir != "" {
			s = strings.ReplaceAll(s, " --dir "+QuoteShell(dir), "")
			s = elsewhere(s, filepath.Clean(dir)+sep, DefaultDir+sep)
		}
		return below(s, folder)
	})
	return r
}

// below makes the paths in a text that begin with a folder relative to it.
func below(text, folder string) string {
	if folder == "" {
		return text
	}
	return elsewhere(text, folder+string(filepath.Separator), "")
}

// elsewhere puts another beginning in place of that of the paths in a text.
func elsewhere(text, prefix, place string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, prefix)
		if at < 0 {
			return b.String() + text
		}
		b.WriteString(text[:at])
		if at == 0 && b.Len() == 0 || at > 0 && strings.ContainsRune(" \t\n\"'`=:,;([{<>|&", rune(text[at-1])) {
			b.WriteString(place)
		} else { // inside of a longer path
			b.WriteString(prefix)
		}
		text = text[at+len(prefix):]
	}
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
