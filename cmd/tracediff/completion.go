package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/docs"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

const completionHint = "want bash, zsh or fish, as in: source <(tracediff completion bash)"

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for bash, zsh or fish",
		ArgsUsage: "bash|zsh|fish",
		Description: `The script completes commands, flags, the values of flags that have a fixed set of values, and file names. It is made from
the flags of this build: load it when a shell starts, and it is never out of date.

Examples:
  source <(tracediff completion bash)     in ~/.bashrc
  source <(tracediff completion zsh)      in ~/.zshrc, after compinit
  tracediff completion fish > \
      ~/.config/fish/completions/tracediff.fish`,
		Action: func(c *cli.Context) error {
			scripts := map[string]func(io.Writer, []completed){"bash": bashScript, "zsh": zshScript, "fish": fishScript}
			if !c.Args().Present() {
				return hint.Add(errors.New("completion wants the name of a shell"), completionHint)
			}
			script := scripts[c.Args().First()]
			if script == nil || c.NArg() != 1 {
				return hint.Add(fmt.Errorf("completion: unknown shell %q", strings.Join(c.Args().Slice(), " ")), completionHint)
			}
			script(c.App.Writer, completions(c.App))
			return nil
		},
	}
}

// completed is the part of a command that a shell completes. The scripts of urfave/cli would run the program at every
// tab. They complete only commands and flags: not the values of --dtype, --format and other flags, and not the headings
// for `explain`. In zsh they show no descriptions of flags, and in bash they need the package bash-completion.
type completed struct {
	name, usage string
	flags       []completedFlag
	words       []string // arguments; nil for files
}

type completedFlag struct {
	name, usage string
	takes       bool     // the flag has a value
	values      []string // nil for files
}

// completions are the commands of the program, from their definitions.
func completions(app *cli.App) []completed {
	var list []completed
	for _, c := range app.Commands {
		if c.Hidden || c.Name == "help" {
			continue
		}
		one := completed{name: c.Name, usage: c.Usage}
		switch c.Name {
		case "completion":
			one.words = []string{"bash", "zsh", "fish"}
		case explainName:
			for _, s := range docs.Mistakes() {
				one.words = append(one.words, s.Anchor)
			}
		}
		for _, f := range c.Flags {
			name := f.Names()[0]
			if name == "help" || c.Name == watchName && slices.Contains(notOfWatch, name) { // help is added by the package to the running command
				continue
			}
			doc, _ := f.(cli.DocGenerationFlag)
			one.flags = append(one.flags, completedFlag{
				name: name, usage: strings.ReplaceAll(doc.GetUsage(), "`", ""), takes: doc.TakesValue(), values: choicesOf(c.Name, name),
			})
		}
		one.flags = append(one.flags, completedFlag{name: "help", usage: "show what the command does, with examples"})
		list = append(list, one)
	}
	return list
}

// bashScript completes by the first word, which is the command, and by the word before the current word.
func bashScript(w io.Writer, commands []completed) {
	fmt.Fprintln(w, `# bash completion of tracediff; load it with: source <(tracediff completion bash)
_tracediff() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then`)
	fmt.Fprintf(w, "\t\tCOMPREPLY=($(compgen -W %s -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase \"${COMP_WORDS[1]} $prev\" in\n", plain.QuoteShell(strings.Join(names(commands), " ")))
	for _, c := range commands {
		for _, f := range c.flags {
			switch {
			case f.values != nil:
				fmt.Fprintf(w, "\t'%s --%s') words=%s ;;\n", c.name, f.name, plain.QuoteShell(strings.Join(f.values, " ")))
			case f.takes:
				fmt.Fprintf(w, "\t'%s --%s') COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", c.name, f.name)
			}
		}
	}
	fmt.Fprintln(w, "\tesac\n\tif [ -z \"$words\" ]; then\n\t\tcase \"${COMP_WORDS[1]}\" in")
	for _, c := range commands {
		words := slices.Clone(c.words)
		for _, f := range c.flags {
			words = append(words, "--"+f.name)
		}
		fmt.Fprintf(w, "\t\t%s) words=%s ;;\n", c.name, plain.QuoteShell(strings.Join(words, " ")))
	}
	fmt.Fprintln(w, `		esac
	fi
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	if [ ${#COMPREPLY[@]} -eq 0 ]; then
		COMPREPLY=($(compgen -f -- "$cur"))
	fi
}
complete -o filenames -F _tracediff tracediff`)
}

// zshScript describes each command's flags to _arguments.
func zshScript(w io.Writer, commands []completed) {
	fmt.Fprintln(w, "#compdef tracediff\n# zsh completion of tracediff; load it with: source <(tracediff completion zsh)\n_tracediff() {\n\tlocal -a commands=(")
	for _, c := range commands {
		fmt.Fprintf(w, "\t\t%s\n", quoteAlways(c.name+":"+c.usage))
	}
	fmt.Fprintln(w, "\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tlocal command=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $command in")
	escape := strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`)
	for _, c := range commands {
		fmt.Fprintf(w, "\t%s) _arguments", c.name)
		for _, f := range c.flags {
			spec := "*--" + f.name + "[" + escape.Replace(f.usage) + "]"
			switch {
			case f.values != nil:
				spec += ":value:(" + escape.Replace(strings.Join(f.values, " ")) + ")"
			case f.takes:
				spec += ":value:_files"
			}
			fmt.Fprintf(w, " \\\n\t\t%s", quoteAlways(spec))
		}
		rest := "*:file:_files"
		if c.words != nil {
			rest = "*:word:(" + strings.Join(c.words, " ") + ")"
		}
		fmt.Fprintf(w, " \\\n\t\t%s ;;\n", quoteAlways(rest))
	}
	fmt.Fprintln(w, "\tesac\n}\ncompdef _tracediff tracediff")
}

// fishScript writes a line for each completion.
func fishScript(w io.Writer, commands []completed) {
	fmt.Fprintln(w, "# fish completion of tracediff\ncomplete -c tracediff -n __fish_use_subcommand -f")
	escape := strings.NewReplacer(`\`, `\\`, "'", `\'`)
	quote := func(s string) string { return "'" + escape.Replace(s) + "'" }
	for _, c := range commands {
		fmt.Fprintf(w, "complete -c tracediff -n __fish_use_subcommand -a %s -d %s\n", c.name, quote(c.usage))
		within := quote("__fish_seen_subcommand_from " + c.name)
		if c.words != nil {
			fmt.Fprintf(w, "complete -c tracediff -n %s -f -a %s\n", within, quote(strings.Join(c.words, " ")))
		}
		for _, f := range c.flags {
			fmt.Fprintf(w, "complete -c tracediff -n %s -l %s -d %s", within, f.name, quote(f.usage))
			switch {
			case f.values != nil:
				fmt.Fprintf(w, " -x -a %s", quote(strings.Join(f.values, " ")))
			case f.takes:
				fmt.Fprint(w, " -r")
			}
			fmt.Fprintln(w)
		}
	}
}

func names(commands []completed) []string {
	var list []string
	for _, c := range commands {
		list = append(list, c.name)
	}
	return list
}

// quoteAlways quotes a word for a POSIX shell.
func quoteAlways(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
