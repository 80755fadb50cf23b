package choice

import (
	"fmt"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
)

// NotGated reports a walk in a file where only transformers may be the reference: a file's name does not say that somebody
// asked for a walk. The hint names the flag that accepts it here.
func NotGated(e *settings.Env, ref *capture.Trace, accept string) error {
	if !e.Gate || ref.Manifest().Producer.Name != reference.WalkName {
		return nil
	}
	return hint.Add(fmt.Errorf("%s is the float64 walk, and a gate needs a trace of transformers", ref.Path()),
		"make a trace with --reference hf, or accept the walk with "+accept+". --gate or CI=true makes this a gate")
}

// gateError names the command that makes the reference which is missing.
func (c chooser) gateError() error {
	return hint.Add(fmt.Errorf("there is no trace of transformers for %s, these token ids and %s, and a gate does not accept the walk in its place", c.job.Model.Checkpoint.Name(), c.job.Model.DType),
		"make one: "+c.captureCommand()+"; or accept the walk with --reference go (in tracediff.toml: reference = \"go\"). --gate or CI=true makes this a gate")
}

// captureCommand is the command that makes the reference of the job.
func (c chooser) captureCommand() string {
	j := c.job
	command := "tracediff capture --side reference --reference hf"
	if j.Settings.Model != "" {
		command += " --model " + plain.QuoteShell(j.Settings.Model)
	}
	if j.Model.Port != nil {
		command += " --weights-from " + plain.QuoteShell(j.Settings.Weights)
	}
	if j.Model.Port != nil && j.Settings.Map != "" {
		command += " --map " + plain.QuoteShell(j.Settings.Map)
	}
	command += " --tokens " + plain.QuoteShell(reference.FormatTokens(j.Input.Passes))
	if j.Input.Further > 0 {
		command += fmt.Sprintf(" --max-new-tokens %d", j.Input.Further)
	}
	command += " --dtype " + j.Model.DType.String()
	if j.Dir != settings.DefaultDir {
		command += " --dir " + plain.QuoteShell(j.Dir)
	}
	return command
}
