package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The action in a repository of a person, from nothing: a small checkpoint, a port in C, references that transformers made once and that are
// committed. The job has no Python. It is green; with a bug in the port it is red, and says the bug's name; with a program that does not have
// the checksum of its release, or without a tag, nothing is run. TRACEDIFF_RELEASE is a folder that .ci/release has made, and
// TRACEDIFF_PYTHON a Python with torch and transformers.
func TestAction(t *testing.T) {
	release, python := os.Getenv("TRACEDIFF_RELEASE"), os.Getenv("TRACEDIFF_PYTHON")
	if release == "" || python == "" {
		t.Skip("needs TRACEDIFF_RELEASE: a folder that .ci/release has made; and TRACEDIFF_PYTHON: .ci/run has how")
	}
	a := &actionRun{t: t, root: sources(t), repository: t.TempDir(), temp: t.TempDir()}
	a.publish(release)
	a.write(python)

	if status, said := a.job(""); status != 0 || !strings.Contains(said, "gate: 1 of 1 prompts match") {
		t.Fatalf("the sound port: status %d\n%s", status, said)
	}
	status, said := a.job("-DBUG=ROPE_INTERLEAVED")
	if status != 1 || !regexp.MustCompile(`(?m)^::error file=tracediff.toml,title=tracediff%3A keeper%3A MISMATCH at layers.0.self_attn.q_rope::`).MatchString(said) {
		t.Errorf("a port with a bug: status %d\n%s", status, said)
	}
	for file, want := range map[string]string{
		"tracediff-reports/tracediff.sarif": `"ruleId": "rotary-pairs"`, "tracediff-reports/tracediff.xml": "layers.0.self_attn.q_rope", "summary.md": "interleaved RoPE", "output": "status=1\nsarif=",
	} {
		data, err := os.ReadFile(filepath.Join(a.temp, file))
		must(t, err)
		if !strings.Contains(string(data), want) {
			t.Errorf("%s does not have %q:\n%s", file, want, tail(string(data)))
		}
	}

	tag := a.tag
	a.tag = "main"
	if status, said := a.job(""); status != 2 || !strings.Contains(said, `"main" is no release`) {
		t.Errorf("an action that is pinned to a branch: status %d\n%s", status, said)
	}
	a.tag = tag
	must(t, os.WriteFile(a.archive, []byte("another program"), 0o666))
	if status, said := a.job(""); status != 2 || !strings.Contains(said, "has the checksum") {
		t.Errorf("a program that is not the release's: status %d\n%s", status, said)
	}
}

// actionRun is a machine of GitHub Actions, as far as scripts are concerned: it runs the steps of docs/ci/github-parity.yml and of action.yml.
type actionRun struct {
	t                      *testing.T
	root, repository, temp string
	releases, archive, tag string
}

// publish lays a release where the action looks for it.
func (a *actionRun) publish(release string) {
	found, err := filepath.Glob(filepath.Join(release, "tracediff-v*-linux-amd64.tar.gz"))
	must(a.t, err)
	if len(found) != 1 {
		a.t.Fatalf("%s has the archives %q", release, found)
	}
	a.tag = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), "tracediff-"), "-linux-amd64.tar.gz")
	a.releases = a.t.TempDir()
	folder := filepath.Join(a.releases, a.tag)
	must(a.t, os.CopyFS(folder, os.DirFS(release)))
	a.archive = filepath.Join(folder, filepath.Base(found[0]))
}

// write makes the repository: what a person has, and then what the page says to do once.
func (a *actionRun) write(python string) {
	must(a.t, os.CopyFS(filepath.Join(a.repository, "model"), os.DirFS(filepath.Join(a.root, "fixtures/gemma3n-tiny"))))
	must(a.t, os.CopyFS(filepath.Join(a.repository, "fixtures/ports/c"), os.DirFS(filepath.Join(a.root, "fixtures/ports/c"))))
	must(a.t, os.CopyFS(filepath.Join(a.repository, "hooks/c"), os.DirFS(filepath.Join(a.root, "hooks/c"))))
	for name, text := range map[string]string{
		"Makefile": "port:\n\tcc -std=c99 $(FLAGS) -o port fixtures/ports/c/*.c -lm\n",
		"tracediff.toml": "model = \"model\"\ndtype = \"float32\"\nlevel = 3\n" +
			"local = \"exec:./port --model {model} --tokens {tokens} --prompt {prompt} --out {out}\"\n[[prompt]]\nname = \"keeper\"\ntext = \"The keeper counts ships\"\n",
	} {
		must(a.t, os.WriteFile(filepath.Join(a.repository, name), []byte(text), 0o666))
	}
	page := readPage(a.t, a.root, "docs/ci.md")
	once := regexp.MustCompile(`(?m)^ +tracediff (capture --side reference .*)$`).FindStringSubmatch(page)
	if once == nil {
		a.t.Fatal("docs/ci.md does not say how references are made")
	}
	a.t.Chdir(a.repository)
	a.t.Setenv("CI", "")
	var out, errOut bytes.Buffer
	if code := run(append(append([]string{"tracediff"}, fieldsOf(once[1])...), "--python", python), nil, &out, &errOut); code != exitMatch {
		a.t.Fatalf("exit status %d: %s", code, errOut.String())
	}
	left, err := filepath.Glob(".tracediff/*") // git add .tracediff/references
	must(a.t, err)
	for _, path := range left {
		if filepath.Base(path) != "references" {
			must(a.t, os.RemoveAll(path))
		}
	}
}

// job runs the workflow in a new checkout, with flags for the port's compiler, and returns its status and what it said.
func (a *actionRun) job(flags string) (int, string) {
	a.t.Helper()
	var w workflow
	must(a.t, yaml.Unmarshal([]byte(readPage(a.t, a.root, "docs/ci/github-parity.yml")), &w))
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct{ Steps []workflowStep }
	}
	must(a.t, yaml.Unmarshal([]byte(readPage(a.t, a.root, "action.yml")), &action))
	checkout := a.t.TempDir()
	must(a.t, os.CopyFS(checkout, os.DirFS(a.repository)))
	must(a.t, os.RemoveAll(a.temp))
	must(a.t, os.MkdirAll(a.temp, 0o777))
	var said bytes.Buffer
	for _, step := range w.Jobs["gate"].Steps {
		steps := []workflowStep{step}
		if strings.HasPrefix(step.Uses, "tracediff/tracediff@v") {
			steps = action.Runs.Steps
		}
		for _, s := range steps {
			if slices.Contains([]string{"actions/checkout@v4", "actions/upload-artifact@v4"}, s.Uses) {
				continue
			}
			cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", s.Run)
			cmd.Dir = checkout
			cmd.Env = []string{
				"PATH=/usr/bin:/bin", "HOME=" + a.temp, "CI=true", "GITHUB_ACTIONS=true", "RUNNER_TEMP=" + a.temp, "RUNNER_ARCH=X64", "GITHUB_OUTPUT=" + filepath.Join(a.temp, "output"),
				"GITHUB_STEP_SUMMARY=" + filepath.Join(a.temp, "summary.md"), "TRACEDIFF_RELEASES=file://" + a.releases, "FLAGS=" + flags,
			}
			for name, value := range s.Env {
				cmd.Env = append(cmd.Env, name+"="+a.value(value, step.With, action.Inputs))
			}
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Run(); err != nil {
				return cmd.ProcessState.ExitCode(), said.String()
			}
		}
	}
	return 0, said.String()
}

// value is what an expression of action.yml becomes. One that is not known is an error of the test.
func (a *actionRun) value(text string, with map[string]string, inputs map[string]struct{ Default string }) string {
	input, ok := strings.CutPrefix(text, "${{ inputs.")
	name := strings.TrimSuffix(input, " }}")
	switch {
	case text == "${{ inputs.version || github.action_ref }}":
		return a.tag
	case text == "${{ github.action_path }}":
		return a.root
	case text == "${{ github.token }}":
		return ""
	case ok:
		if given, ok := with[name]; ok {
			return given
		}
		if _, ok := inputs[name]; ok {
			return inputs[name].Default
		}
	}
	a.t.Fatalf("an expression that is not known: %s", text)
	return ""
}
