package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/ci"
	"github.com/tracediff/tracediff/internal/hint"
)

// mergeName is the command whose arguments are reports.
const mergeName = "merge"

func mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      mergeName,
		Usage:     "make one report of the shards of a gate",
		ArgsUsage: "REPORT...",
		Description: `Reads the JSON reports that "tracediff gate --shard I/N --report json=FILE" wrote, one of each shard, and writes what the
gate writes when it runs all prompts itself: text, JSON, JSON Lines and JUnit are the same byte for byte. A missing shard, a shard
that is given twice and shards of different gates are errors; the message says what differs.

Exit status: 0 every prompt matches, 1 one does not or is incomplete, 2 one could not be compared, or these are not all shards
of one gate.

Examples:
  tracediff merge shard-0.json shard-1.json shard-2.json shard-3.json
  tracediff merge shards/*/tracediff.json --report junit=tracediff.xml
  tracediff merge -q shard-*.json
  tracediff merge shard-*.json --report github`,
		Flags: slices.Concat(reportFlags(), talkFlags()),
		Action: func(c *cli.Context) error {
			if err := checkTalk(c); err != nil {
				return err
			}
			if !c.Args().Present() {
				return hint.Add(errors.New("merge wants the reports of all shards"), "tracediff merge shard-*.json")
			}
			out, err := readOutputs(c)
			if err != nil {
				return err
			}
			defer out.close()
			d, config, err := ci.Merge(c.Args().Slice())
			if err != nil {
				return err
			}
			out.about = config
			var failed error
			for _, r := range d.Runs {
				if r.Error != "" {
					printError(c.App.ErrWriter, hint.Add(fmt.Errorf("prompt %q: %s", r.Name, r.Error), r.Hint))
					failed = unusable{}
				}
			}
			return out.publish(c, d, failed)
		},
	}
}
