package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/settings"
)

var textOrJSON = []string{"text", "json"}

// choices are the values of flags with a fixed set of values, by the flag, or by command and flag where a command has its own. What
// reads a flag takes no other value, and completion offers these.
var choices = map[string][]string{
	"format": slices.Sorted(maps.Keys(formats)), "weights format": slices.Sorted(maps.Keys(weightFormats)), "order format": {"table", "json", "text"},
	"check format": textOrJSON, "diff-program format": textOrJSON, "doctor format": textOrJSON, "inspect format": textOrJSON, "prompts format": textOrJSON,
	"dtype": settings.DTypes, "level": {"1", "2", "3"}, "side": {"both", "local", "reference"}, "color": {"auto", "always", "never"},
	"local": settings.Keywords("local"), "reference": settings.Keywords("reference"),
	"arithmetic": {string(isolate.Auto), string(isolate.Strict)}, "bound": {"probabilistic", "rigorous"},
}

func choicesOf(command, flag string) []string {
	if own := choices[command+" "+flag]; own != nil {
		return own
	}
	return choices[flag]
}

// checkValue returns an error for a flag with another value.
func checkValue(c *cli.Context, flag string) error {
	list, value := choicesOf(c.Command.Name, flag), c.String(flag)
	if slices.Contains(list, value) {
		return nil
	}
	last := len(list) - 1
	return hint.Add(fmt.Errorf("--%s is %q", flag, value), "want "+strings.Join(list[:last], ", ")+" or "+list[last])
}
