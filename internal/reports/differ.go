package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// most differences of one report are listed.
const mostListed = 12

// errDiffer is the error of reports with other fields than before.
var errDiffer = errors.New("reports differ")

// compareFolders lists the fields in which the reports of two folders differ.
func compareFolders(w io.Writer, before, after string, cases []reportCase) error {
	differ := 0
	for _, c := range cases {
		a, err := readReport(before, c.name)
		if err != nil {
			return err
		}
		b, err := readReport(after, c.name)
		if err != nil {
			return err
		}
		fields := differences("", a, b)
		if len(fields) == 0 {
			continue
		}
		differ++
		fmt.Fprintf(w, "%s:\n", c.name)
		for _, f := range fields[:min(len(fields), mostListed)] {
			fmt.Fprintf(w, "  %s\n", f)
		}
		if more := len(fields) - mostListed; more > 0 {
			fmt.Fprintf(w, "  and %d more\n", more)
		}
	}
	fmt.Fprintf(w, "%d of %d reports differ\n", differ, len(cases))
	if differ > 0 {
		return errDiffer
	}
	return nil
}

func readReport(folder, name string) (x any, err error) {
	data, err := os.ReadFile(filepath.Join(folder, name+".json"))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // digits, and not what a float64 makes of them
	err = d.Decode(&x)
	return x, err
}

// differences are the fields that two values have otherwise, each with both values.
func differences(at string, a, b any) []string {
	var all []string
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := slices.Collect(maps.Keys(x))
		for key := range y {
			if _, both := x[key]; !both {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			all = append(all, differences(at+"."+key, x[key], y[key])...)
		}
		return all
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for k := range x {
			all = append(all, differences(fmt.Sprintf("%s[%d]", at, k), x[k], y[k])...)
		}
		return all
	default:
		if _, object := b.(map[string]any); object {
			break
		}
		if _, list := b.([]any); !list && a == b {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: %s, was %s", at, short(b), short(a))}
}

// short is a value in one line.
func short(x any) string {
	const most = 160
	text, err := json.Marshal(x)
	if err != nil {
		return err.Error()
	}
	if len(text) > most {
		return string(text[:most]) + " ..."
	}
	return string(text)
}
