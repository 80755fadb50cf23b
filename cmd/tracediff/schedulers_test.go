package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"
)

// The workflows of docs/ci do what they say, run as GitHub Actions would. $DOCS is the folder of the documentation. It takes some
// ten runs of the program, and so is a matter of the gate. The files for Slurm run on a cluster of one node, in .ci/slurm.
func TestSchedulers(t *testing.T) {
	if os.Getenv("TRACEDIFF_SCHEDULERS") == "" {
		t.Skip("needs TRACEDIFF_SCHEDULERS: that it is asked for")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/gate",
		Setup: func(e *testscript.Env) error {
			e.Setenv("DOCS", filepath.Join(sources(t), "docs"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"workflow": workflowJob},
	})
}

// workflow is what of a workflow of GitHub Actions the examples use. What they use beside it is an error of the test.
type workflow struct {
	Name        string            `yaml:"name"`
	On          any               `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		Needs    string `yaml:"needs"`
		If       string `yaml:"if"`
		RunsOn   string `yaml:"runs-on"`
		Strategy struct {
			FailFast *bool            `yaml:"fail-fast"`
			Matrix   map[string][]any `yaml:"matrix"`
		} `yaml:"strategy"`
		Steps []workflowStep `yaml:"steps"`
	} `yaml:"jobs"`
}

type workflowStep struct {
	Name string            `yaml:"name"`
	If   string            `yaml:"if"`
	Uses string            `yaml:"uses"`
	With map[string]string `yaml:"with"`
	Env  map[string]string `yaml:"env"`
	Run  string            `yaml:"run"`
}

func decodeYAML(ts *testscript.TestScript, path string, into any) {
	text, err := os.ReadFile(path)
	ts.Check(err)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	ts.Check(d.Decode(into))
}

// workflowJob FILE JOB runs a job of a workflow, each machine of its matrix in a copy of the folder checkout, and leaves artifacts in
// the folder artifacts. What a step prints is in the file JOB.log. Its error is that of a machine.
func workflowJob(ts *testscript.TestScript, neg bool, args []string) {
	var w workflow
	decodeYAML(ts, args[0], &w)
	job, ok := w.Jobs[args[1]]
	if !ok {
		ts.Fatalf("%s has no job %s", args[0], args[1])
	}
	machines := 1
	for _, values := range job.Strategy.Matrix {
		machines *= len(values)
	}
	if len(job.Strategy.Matrix) > 0 && (job.Strategy.FailFast == nil || *job.Strategy.FailFast) {
		ts.Fatalf("a machine that fails ends the others")
	}
	failed := false
	var log bytes.Buffer
	for i := range machines {
		place := ts.MkAbs(args[1] + strconv.Itoa(i))
		ts.Check(os.CopyFS(place, os.DirFS(ts.MkAbs("checkout"))))
		expressions := strings.NewReplacer("${{ strategy.job-index }}", strconv.Itoa(i), "${{ strategy.job-total }}", strconv.Itoa(machines))
		bad := false
		for _, step := range job.Steps {
			if bad && step.If != "${{ !cancelled() }}" {
				continue
			}
			if step.Uses != "" {
				useAction(ts, place, step, expressions)
				continue
			}
			cmd := exec.Command("bash", "-e", "-c", expressions.Replace(step.Run))
			cmd.Dir = place
			cmd.Env = append(os.Environ(), "PATH="+ts.MkAbs("bin")+":"+ts.Getenv("PATH"), "CI=true", "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+ts.MkAbs(args[1]+".md"))
			for name, value := range step.Env {
				cmd.Env = append(cmd.Env, name+"="+expressions.Replace(value))
			}
			if strings.Contains(strings.Join(cmd.Env, " ")+expressions.Replace(step.Run), "${{") {
				ts.Fatalf("an expression that is not known: %s", step.Run)
			}
			out, err := cmd.CombinedOutput()
			log.Write(out)
			bad = bad || err != nil
		}
		failed = failed || bad
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]+".log"), log.Bytes(), 0o666))
	if failed != neg {
		ts.Fatalf("job %s failed: %v\n%s", args[1], failed, log.String())
	}
}

// useAction does what an action of GitHub does, as far as files are concerned.
func useAction(ts *testscript.TestScript, place string, step workflowStep, expressions *strings.Replacer) {
	with := func(key string) string { return expressions.Replace(step.With[key]) }
	switch name, _, _ := strings.Cut(step.Uses, "@"); name {
	case "actions/checkout", "actions/setup-go", "actions/cache":
	case "actions/upload-artifact":
		folder := filepath.Join(ts.MkAbs("artifacts"), with("name"))
		ts.Check(os.MkdirAll(folder, 0o777))
		for _, path := range strings.Fields(with("path")) {
			data, err := os.ReadFile(filepath.Join(place, path))
			if errors.Is(err, os.ErrNotExist) { // a warning there
				continue
			}
			ts.Check(err)
			ts.Check(os.WriteFile(filepath.Join(folder, filepath.Base(path)), data, 0o666))
		}
	case "actions/download-artifact":
		if with("merge-multiple") != "true" {
			ts.Fatalf("each artifact would lie in a folder of its own")
		}
		found, err := filepath.Glob(filepath.Join(ts.MkAbs("artifacts"), with("pattern")))
		ts.Check(err)
		for _, folder := range found {
			ts.Check(os.CopyFS(filepath.Join(place, with("path")), os.DirFS(folder)))
		}
	default:
		ts.Fatalf("%s: what does it do?", step.Uses)
	}
}
