package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

func manCommand() *cli.Command {
	return &cli.Command{
		Name:  "man",
		Usage: "print the manual page",
		Description: `The page has every command with its flags and examples, made from the help of this build.

Examples:
  tracediff man | man -l -
  tracediff man > ~/.local/share/man/man1/tracediff.1`,
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return manPage(c.App.Writer, c.App)
		},
	}
}

// roff escapes a text within a line. A dot or a quote at the start would begin a command.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// manPage writes the manual page in the language of man(7). App.ToMan of urfave/cli would leave out the description
// of every command, which has the examples and the exit status: its template reads only Usage, UsageText and flags.
func manPage(w io.Writer, app *cli.App) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	asIs := func(text string) {
		line(".nf")
		for l := range strings.SplitSeq(text, "\n") {
			line("%s", roff(l))
		}
		line(".fi")
	}
	line(`.TH TRACEDIFF 1 "" "" "User Commands"`)
	line(".SH NAME\ntracediff \\- %s", roff(app.Usage))
	line(".SH SYNOPSIS\n.B tracediff\n.I command\n[flags] [arguments]")
	line(".SH COMMANDS")
	for _, c := range app.Commands {
		if c.Hidden || c.Name == "help" {
			continue
		}
		line(".SS tracediff %s %s", roff(c.Name), roff(c.ArgsUsage))
		line("%s.\n.PP", roff(c.Usage))
		asIs(c.Description)
		for _, f := range c.Flags {
			if f.Names()[0] == "help" {
				continue
			}
			doc, _ := f.(cli.DocGenerationFlag)
			name, usage := "--"+f.Names()[0], doc.GetUsage()
			if begin := strings.IndexByte(usage, '`'); begin >= 0 && doc.TakesValue() {
				value, _, _ := strings.Cut(usage[begin+1:], "`")
				name += " " + value
			}
			line(".TP\n.B %s\n%s", roff(name), roff(strings.ReplaceAll(usage, "`", "")))
		}
	}
	line(".SH EXIT STATUS")
	asIs("0    nothing is wrong\n1    something is wrong or incomplete\n2    usage, or input that cannot be read\n130  interrupted")
	_, err := io.WriteString(w, b.String())
	return err
}
