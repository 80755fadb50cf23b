package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/plain"
)

// compareHelp is the help of compare on one screen. --help-all has every flag.
const compareHelp = `tracediff compare: find the first tensor at which your port and the reference
differ, and say whether that is a bug or rounding

USAGE
  tracediff compare [flags]                   run the port again and compare
  tracediff compare [flags] LOCAL REFERENCE   compare two trace files
  tracediff compare --isolate [flags] LOCAL   check one trace

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
  -q                    print only the verdict
  --report FORMAT=FILE  also write html, json, jsonl, junit, sarif or github
  --help-all            the other flags: tolerances, certificates, A/B, CI

Without --model, --prompt and --tokens the settings of the last capture or
compare apply, even if it failed; the flags that you type change them.

EXAMPLES
  tracediff compare --prompt "Hello world"
  tracediff compare --level 3 --layers 0-2
  tracediff compare --local 'exec:./port --tokens {tokens} --out {out}'
  tracediff compare mine.safetensors reference.safetensors

Exit status: 0 everything in scope was compared and matches, 1 it does not or
is incomplete, 2 it cannot be compared. docs/report.md defines the words of
the report.
`

// helpAll is the flag that prints every flag, for commands whose --help has a part of the flags.
const helpAll = "help-all"

// mainFlags are the flags on the help page of a command with too many flags for a page. A command without an entry shows all
// flags.
var mainFlags = map[string][]string{
	"capture": {"model", "prompt", "tokens", "max-new-tokens", "dtype", "local", "reference", "side", "level", "layers", "dir", "verbose"},
	watchName: {"watch", "local", "reference", "model", "prompt", "tokens", "level", "layers", "all", "config", "quiet", "report"},
	gateName:  {"config", "all", "baseline", "require-certified", "shard", "dir", "python", "table", "verbose", "quiet", "report"},
	"inspect": {"pass", "slice", "row", "top", "map", "model", "format"},
	"order":   {"model", "level", "layers", "steps", "format", "record", "tokens", "order"},
	"doctor":  {"model", "prompt", "tokens", "max-new-tokens", "weights", "level", "full", "clean", "python", "format"},
}

// briefs has a text of one line for each flag on a short page. The usage of the flag itself, on --help-all, is longer.
var briefs = map[string]string{
	"model": "checkpoint, as Hugging Face writes it", "prompt": "what both sides read", "tokens": "token ids instead of a prompt: 2,513,88",
	"max-new-tokens": "decode N tokens, each a pass of its own", "dtype": "float32, bfloat16, float16, or auto: the checkpoint's",
	"local": "your port: exec:COMMAND, or a trace FILE", "reference": "hf (transformers), go (float64), or a trace FILE",
	"level": "1 block boundaries, 2 outputs of modules, 3 everything", "layers": "only these, such as 0-3,7", "dir": "where traces are kept",
	"verbose": "print what was used, and how long each step takes", "quiet": "print only the verdict", "all": "go on after the first divergence",
	"side": "local, reference or both", "table": "print every entry with all its numbers", "report": "also write html, json, jsonl, junit, sarif or github",
	"config": "the file that says what is compared", "baseline": "known divergences, which do not fail",
	"require-certified": "every entry has to be EXACT or ROUNDING", "shard": "the prompts of shard I of N, from 0",
	"watch": "a folder or a file to watch (repeatable)", "python": "a Python with torch and transformers", "weights": "the port's own checkpoint",
	"full": "look at every value, and run the model however long it takes", "clean": "remove what tracediff has put into --dir",
	"format": "of standard output", "steps": "how each tensor is computed, step by step", "record": "store the program of a model without an order",
	"order": "a list of names in place of the model's order",
}

// helpPages gives every command a --help of one page, and a --help-all if the page lacks flags.
func helpPages(commands []*cli.Command) {
	for _, c := range commands {
		if c.CustomHelpTemplate == "" {
			c.CustomHelpTemplate = strings.NewReplacer("{{", "{{`{{`}}").Replace(helpPage(c, mainFlags[c.Name]))
		}
		if mainFlags[c.Name] == nil {
			continue
		}
		c.Flags = append(c.Flags, &cli.BoolFlag{Name: helpAll, Usage: "show every flag"})
		action := c.Action
		c.Action = func(ctx *cli.Context) error {
			if ctx.Bool(helpAll) {
				return allFlags(ctx)
			}
			return action(ctx)
		}
	}
}

// allFlags prints the help of a command with every flag.
func allFlags(c *cli.Context) error {
	_, err := io.WriteString(c.App.Writer, helpPage(c.Command, nil))
	return err
}

// helpPage is the help of a command, wrapped at the width of a page. With names in shown, it has only these flags and the first paragraph of
// the description.
func helpPage(c *cli.Command, shown []string) string {
	var b strings.Builder
	usage := "  tracediff " + c.Name
	if len(c.Flags) > 0 {
		usage += " [flags]"
	}
	fmt.Fprintf(&b, "%s\n\nUSAGE\n%s\n", plain.Wrap(fmt.Sprintf("tracediff %s: %s", c.Name, c.Usage), plain.Columns, 0), strings.TrimRight(usage+" "+c.ArgsUsage, " "))
	if flags := flagLines(c, shown); len(flags) > 0 {
		fmt.Fprintf(&b, "\nFLAGS\n%s\n", strings.Join(flags, "\n"))
	}
	text, examples, _ := strings.Cut(c.Description, "Example")
	_, examples, _ = strings.Cut(examples, "\n")
	_, status, hasStatus := strings.Cut(text, "Exit status: ")
	text, _, _ = strings.Cut(text, "Exit status: ")
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if paragraph == "" || shown != nil && i > 0 {
			break
		}
		fmt.Fprintf(&b, "\n%s\n", plain.Wrap(strings.Join(strings.Fields(paragraph), " "), plain.Columns, 0))
	}
	fmt.Fprintf(&b, "\nEXAMPLES\n")
	for line := range strings.Lines(examples) {
		fmt.Fprintln(&b, continued(strings.TrimRight(line, "\n")))
	}
	if hasStatus {
		fmt.Fprintf(&b, "\n%s\n", plain.Wrap("Exit status: "+strings.Join(strings.Fields(status), " "), plain.Columns, 0))
	}
	return b.String()
}

var placeholder = regexp.MustCompile("`([^`]+)`")

// headColumns is the maximum width of the column of flag names. The text of a longer name begins in the next line.
const headColumns = 26

// flagLines are flags with their texts: the flags in shown with short texts, or all flags.
func flagLines(c *cli.Command, shown []string) []string {
	var heads, texts []string
	width := 0
	add := func(head, text string) {
		heads, texts = append(heads, head), append(texts, text)
		width = max(width, min(len(head), headColumns))
	}
	names := shown
	if shown == nil {
		for _, f := range c.Flags {
			names = append(names, f.Names()[0])
		}
	}
	for _, name := range names {
		at := slices.IndexFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == name })
		doc, ok := c.Flags[at].(cli.DocGenerationFlag)
		if !ok || name == "help" {
			continue
		}
		head, usage := "--"+name, doc.GetUsage()
		if name == "quiet" {
			head = "-q, " + head
		}
		if m := placeholder.FindStringSubmatch(usage); m != nil && doc.TakesValue() {
			head += " " + m[1]
		}
		usage = strings.ReplaceAll(usage, "`", "")
		if value := doc.GetDefaultText(); doc.TakesValue() && value != "" && !strings.Contains(usage, "(default") {
			usage += " (default: " + value + ")"
		}
		if shown != nil && briefs[name] != "" {
			usage = briefs[name]
		}
		add("  "+head, usage)
	}
	if shown != nil {
		add("  --"+helpAll, "the other flags, and more about this command")
	}
	var lines []string
	for i, head := range heads {
		if len(head) > width {
			lines = append(lines, head)
			head = ""
		}
		lines = append(lines, plain.Wrap(fmt.Sprintf("%-*s  %s", width, head, texts[i]), plain.Columns, width+2))
	}
	return lines
}

// continued breaks a command wider than a page before flags, with a backslash for the shell.
func continued(line string) string {
	var b strings.Builder
	for utf8.RuneCountInString(line) > plain.Columns {
		at := strings.LastIndex(string([]rune(line)[:plain.Columns-2]), " --")
		for at >= 0 && strings.Count(line[:at], "'")%2 == 1 { // within quotes a backslash is a backslash
			at = strings.LastIndex(line[:at], " --")
		}
		if at <= 6 { // the flag is as wide as a page
			break
		}
		b.WriteString(line[:at] + " \\\n")
		line = "     " + line[at:]
	}
	return b.String() + line
}

// group is a heading of the list of commands.
type group struct {
	title string
	names []string
}

// groups have every command once; a test checks this.
var groups = []group{
	{"START", []string{demoName, "doctor", "capture", "compare", watchName, explainName}},
	{"LOOK INSIDE", []string{"inspect", "check", "weights", "map", "order"}},
	{"KEEP PARITY", []string{"init", gateName, "prompts", "accept"}},
	{"RARELY TYPED", []string{"merge", "diff-program", "completion", "man", "version"}},
}

// appHelp is the help of the program without a command.
func appHelp(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUSAGE\n  tracediff COMMAND [flags]\n", plain.Wrap("tracediff: "+app.Usage, plain.Columns, 0))
	for _, g := range groups {
		fmt.Fprintf(&b, "\n%s\n", g.title)
		for _, name := range g.names {
			fmt.Fprintln(&b, plain.Wrap(fmt.Sprintf("  %-14s%s", name, app.Command(name).Usage), plain.Columns, 16))
		}
	}
	b.WriteString("\nTry it: tracediff demo. tracediff COMMAND --help shows the flags of a command.\n")
	return b.String()
}
