package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Tokenized are the token ids of a text, made by transformers.
type Tokenized struct {
	IDs          []int    `json:"ids"`
	Texts        []string `json:"texts"`        // of each id
	Transformers string   `json:"transformers"` // its version
}

// Tokenize asks transformers for the ids of a text, with the special tokens of the checkpoint's tokenizer; if chat is true, in the
// chat template of the checkpoint. model is an absolute directory. The error is a *[SetupError] or a *[RunnerError].
func Tokenize(ctx context.Context, python, model, text string, chat bool) (*Tokenized, error) {
	p, err := probePython(ctx, python, runnerNeeds...)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, err
	}
	folder, err := extract()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	args := []string{"-m", "tracediff.ids", "--model", model}
	if chat {
		args = append(args, "--chat")
	}
	var out bytes.Buffer
	var said ending
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = folder, strings.NewReader(text), &out, &said, killWait
	cmd.Env = append(os.Environ(), "PYTHONPATH="+prependPath(folder, os.Getenv("PYTHONPATH")), "PYTHONDONTWRITEBYTECODE=1")
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit):
		return nil, runnerError(&StatusError{Status: exit.String(), Code: exit.ExitCode()}, &said)
	case err != nil:
		return nil, fmt.Errorf("asking %s for token ids: %w", p.Path, err)
	}
	t := &Tokenized{}
	if err := json.Unmarshal(out.Bytes(), t); err != nil || len(t.IDs) == 0 || len(t.Texts) != len(t.IDs) {
		return nil, fmt.Errorf("asking %s for token ids: it answered %.200q", p.Path, out.Bytes())
	}
	return t, nil
}
