package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
	"time"
)

//go:embed page.md.tmpl
var pageText string

// about has the page's words on the measurement.
type about struct {
	Date, Commit, Machine, Producer string
	Frozen                          string // see made.Frozen
	Making, Looking                 time.Duration
	Lines                           []lineCount
}

type lineCount struct {
	Name  string
	Lines int
}

func aboutNow(m made) (about, error) {
	a := about{
		Date: time.Now().UTC().Format(time.DateOnly), Machine: machine(), Producer: m.Producer, Frozen: m.Frozen,
		Making: time.Duration(m.Seconds) * time.Second,
	}
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return a, fmt.Errorf("git describe: %w", err)
	}
	a.Commit = strings.TrimSpace(string(commit))
	a.Lines, err = searchLines(".")
	return a, err
}

// machine is the processor, and how many of them there are.
func machine() string {
	name := runtime.GOARCH
	data, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(data)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d processors", name, runtime.NumCPU())
}

// searchFiles are the files of the search for names: edits, generators, and sentences.
var searchFiles = []string{
	"compare/diagnose/*.go", "compare/naming/name.go", "compare/naming/suspect.go", "compare/naming/together.go",
	"order/program/edit/*.go", "order/program/search.go",
}

// searchLines counts lines of code, without empty lines, comments and tests.
func searchLines(root string) (all []lineCount, err error) {
	for _, pattern := range searchFiles {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s: no files: %w", pattern, err)
		}
		n := lineCount{Name: pattern}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(string(data)) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
					n.Lines++
				}
			}
		}
		all = append(all, n)
	}
	return all, nil
}

// render writes the page.
func render(a about, results []result) ([]byte, error) {
	funcs := template.FuncMap{
		"table":    func(half int, strict bool) string { return scores(results, half, strict) },
		"engines":  func(half int) string { return byEngine(results, half) },
		"controls": func() string { return controls(results) }, "benign": func() string { return reparametrisations(results) },
		"names": func(half int) string { return misleading(results, half) }, "goals": func() string { return goalTable(results) },
		"proven": func(half int) string { return proven(results, half) },
		"costs":  func() string { return costs(results) }, "faults": func(half int) string { return faultTable(results, half) },
		"halves": func() []int { return halves(results) }, "total": func() (n int) {
			for _, l := range a.Lines {
				n += l.Lines
			}
			return n
		},
	}
	t, err := template.New("page").Funcs(funcs).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, a)
	return out.Bytes(), err
}
