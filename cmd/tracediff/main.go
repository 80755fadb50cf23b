// Tracediff finds the first tensor at which a port of a language model and the reference disagree.
//
//	tracediff capture --prompt "Hello world"    dump the tensors of both sides
//	tracediff compare                           capture your port again, walk TENSOR_ORDER, stop at the first divergence
//	tracediff demo                              run the built-in model with a mistake in it, find it, and explain the report
//	tracediff explain NAME                      explain a mistake that a report names, and its fix
//	tracediff watch -- make port                build, run and compare again whenever a source changes
//	tracediff check TRACE                       look for red flags in one trace, without a reference
//	tracediff order                             print TENSOR_ORDER
//	tracediff diff-program A B                  compare two recorded programs of one model step by step
//	tracediff inspect FILE [NAME]               look into a trace: shapes, statistics, histograms, single values
//	tracediff map LOCAL [REFERENCE]             propose how the names and layouts of a dump map to the order
//	tracediff weights LOCAL --model DIR         compare the port's checkpoint with the original, tensor by tensor
//	tracediff doctor                            the checklist: input, weights, settings, machine
//
//	tracediff init                              write a tracediff.toml, with every key explained
//	tracediff gate                              compare every prompt of tracediff.toml, for CI
//	tracediff merge REPORT...                   make one report of the shards of a gate
//	tracediff accept REPORT                     write the divergences of a report to a baseline of known divergences
//	tracediff prompts                           propose a few prompts that together show as many usual mistakes as possible
//	tracediff version                           print the version, the commit and the Go version
//	tracediff completion bash                   print the shell's completion script
//	tracediff man                               print the manual page
//
// Exit status: 0 everything in scope was compared and is right; 1 something is wrong or missing; 2 the command, a file or the
// model cannot be used; 130 interrupted. Errors are two lines on standard error, "tracediff: what: why" and "hint: what to
// do".
//
// Each command has a file, or a few files.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
)

// Exit codes.
const (
	exitMatch    = 0
	exitMismatch = 1
	exitUnusable = 2

	exitInterrupted = 130 // 128 and the number of SIGINT, like shells
)

// thisProcess is made once, at the start of the program.
var thisProcess = settings.NewProcess()

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program and returns the exit status. args[0] is the name of the program.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second interrupt ends the program at once
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP on purpose
		// A closed terminal interrupts, too. The shell may send SIGHUP a second time. The second signal is caught as well, so that no command of
		// the program runs on without the program.
		var released func()
		ctx, released = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer released()
	}
	// Go would end the program at the first write to a closed pipe, before cleanup and verdict. signal.Notify prevents
	// this. signal.Ignore would, too, but the commands of the program would inherit the ignored signal.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	out := newOutput(stdout)
	if f, ok := stderr.(*os.File); !ok || !isatty.IsTerminal(f.Fd()) { // on a terminal, progress redraws lines, and GitHub Actions reads no terminal
		stderr = newOutput(stderr)
	}
	app := newApp(stdin, out, stderr)
	err := app.RunContext(ctx, flagsFirst(app, args))
	if out.err != nil { // a result that could not be written does not count
		failed := hint.Add(fmt.Errorf("writing the output: %w", out.err), "is the disk full, or the output closed?")
		if errors.As(err, new(mismatch)) || errors.As(err, new(unusable)) || errors.Is(err, out.err) {
			err = nil // printed already, or the same error
		}
		err = hint.Also(failed, err)
	}
	var verdict mismatch
	var said unusable
	switch {
	case err == nil:
		return exitMatch
	case errors.As(err, &verdict):
		return exitMismatch
	case errors.As(err, &said):
		return exitUnusable
	case errors.As(err, new(ended)):
		return exitInterrupted
	case ctx.Err() != nil: // the interrupt caused any other error
		printError(stderr, interrupted(err))
		return exitInterrupted
	}
	printError(stderr, err)
	return exitUnusable
}

// output is a stream of the program. It keeps the first error of writing, since many functions that write do not return errors. A closed pipe, as
// after "| head", is no error: the rest of the output is dropped, and the verdict stays the same.
//
// Names, prompts and the output of a port may hold any text. GitHub Actions acts on lines that look like its commands, so output breaks such lines;
// only the function commands writes real commands.
type output struct {
	io.Writer
	err error

	mu   sync.Mutex
	safe io.Writer // to through, without commands
}

// through writes to the stream of an output without breaking commands.
type through struct{ *output }

func newOutput(w io.Writer) *output {
	o := &output{Writer: w}
	o.safe = plain.WithoutCommands(through{o})
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.safe.Write(p)
}

// commands writes workflow commands for GitHub Actions.
func commands(w io.Writer, text []byte) error {
	if o, ok := w.(*output); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		w = through{o}
	}
	_, err := w.Write(text)
	return err
}

func (o through) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		o.Writer = io.Discard
		return len(p), nil
	}
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// mismatch is the error of a comparison that ran and did not match; the report is already printed.
type mismatch struct{}

func (mismatch) Error() string { return "the traces do not match" }

// unusable is the error of a gate with a prompt that could not be compared; the reason is already printed.
type unusable struct{}

func (unusable) Error() string { return "a prompt could not be compared" }

// unreadable is the flag parser's error for a value of the wrong kind: the value and the flag.
var unreadable = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-(\S+): parse error$`)

// flagError is an error of the flag parser, with two dashes before flags: the parser writes one dash.
type flagError struct{ error }

func (e flagError) Error() string {
	if parts := unreadable.FindStringSubmatch(e.error.Error()); parts != nil {
		return fmt.Sprintf("--%s is %s", parts[2], parts[1])
	}
	if name, ok := strings.CutPrefix(e.error.Error(), "flag provided but not defined: -"); ok && len(name) == 1 {
		return "there is no flag -" + name
	}
	return strings.NewReplacer("flag provided but not defined: -", "there is no flag --", "for flag -", "for --", "flag needs an argument: -", "a value is missing after --").Replace(e.error.Error())
}

func (e flagError) Unwrap() error { return e.error }

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	usage := func(c *cli.Context, err error, _ bool) error {
		return hint.Add(flagError{err}, flagHint(c, err))
	}
	app := &cli.App{
		Name:           "tracediff",
		Usage:          "find the first tensor at which a port of a language model and the reference disagree",
		Description:    "Try it: tracediff demo",
		Commands:       []*cli.Command{captureCommand(), compareCommand(), demoCommand(), explainCommand(), watchCommand(), checkCommand(), orderCommand(), diffProgramCommand(), inspectCommand(), mapCommand(), weightsCommand(), doctorCommand(), gateCommand(), mergeCommand(), acceptCommand(), promptsCommand(), initCommand(), versionCommand(), completionCommand(), manCommand()},
		Flags:          []cli.Flag{&cli.BoolFlag{Name: "version", Usage: "print the version"}},
		Reader:         stdin,
		Writer:         stdout,
		ErrWriter:      stderr,
		HideVersion:    true,
		OnUsageError:   usage,
		ExitErrHandler: func(*cli.Context, error) {}, // main owns the exit status
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return printVersion(c.App.Writer)
			}
			if c.Args().Present() {
				return hint.Add(fmt.Errorf("unknown command %q", c.Args().First()), commandHint(c.App, c.Args().First()))
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError = usage
		c.HideHelpCommand = true
	}
	helpPages(app.Commands)
	app.CustomAppHelpTemplate = appHelp(app)
	return app
}

// flagsFirst moves a command's flags before its arguments: the flag package of Go stops at the first argument, and
// would silently take later flags for arguments.
func flagsFirst(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	command := app.Command(args[1])
	if command == nil {
		return args
	}
	takesValue := map[string]bool{}
	for _, f := range command.Flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			takesValue[name] = !isBool
		}
	}
	var flags, rest []string
	for i := 2; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest = append(rest, arg)
			continue
		}
		flags = append(flags, arg)
		name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if takesValue[name] && !hasValue {
			if i++; i == len(args) { // "--" and arguments after the flag would become its value
				return append([]string{args[0], args[1]}, flags...)
			}
			flags = append(flags, args[i])
		}
	}
	out := append([]string{args[0], args[1]}, flags...)
	return append(append(out, "--"), rest...)
}
