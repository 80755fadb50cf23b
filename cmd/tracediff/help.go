package main

import "github.com/urfave/cli/v2"

// compareHelp is what people need of compare on one screen. --help-all has every flag.
const compareHelp = `tracediff compare: find the first tensor at which your port and the reference
differ, and say whether that is a bug or rounding

USAGE
  tracediff compare [flags]                   run the port again and compare
  tracediff compare [flags] LOCAL REFERENCE   compare two trace files
  tracediff compare --isolate [flags] LOCAL   check one trace by itself

FLAGS
  --model DIR           checkpoint, as Hugging Face writes it
  --prompt TEXT         what both sides read
  --tokens IDS          token ids instead of a prompt: 2,513,88
  --max-new-tokens N    decode N tokens, each a pass of its own
  --local RUNNER        your port: exec:COMMAND, or a trace FILE
  --reference RUNNER    hf (transformers), go (float64), or a trace FILE
  --level N             1 block boundaries, 2 outputs of modules, 3 everything
  --layers LAYERS       only these, such as 0-3,7
  --all                 go on after the first divergence
  --table               print every entry with all its numbers
  --verbose             print the numbers that the verdict rests on
  -q                    print the verdict alone
  --report FORMAT=FILE  also write html, json, jsonl, junit, text or github
  --help-all            the other flags: tolerances, certificates, A/B, CI

Without --model, --prompt and --tokens the settings of the last capture or
compare apply, also of one that failed; the flags that you type change them.

EXAMPLES
  tracediff compare --prompt "Hello world"
  tracediff compare --level 3 --layers 0-2
  tracediff compare --local 'exec:./port --tokens {tokens} --out {out}'
  tracediff compare mine.safetensors reference.safetensors

Exit status: 0 everything in scope was compared and matches, 1 it does not or
is incomplete, 2 it cannot be compared. docs/glossary.md defines the words of
the report.
`

// helpAll is the flag that prints every flag, of a command whose --help has some of them.
const helpAll = "help-all"

// allFlags prints the help of a command with every flag.
func allFlags(c *cli.Context) error {
	cli.HelpPrinter(c.App.Writer, cli.CommandHelpTemplate, c.Command)
	return nil
}
