package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/internal/advice"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/plain"
)

// display shows the progress of a watch. Several goroutines may call its methods at the same time.
type display interface {
	state(p *pass, doing string) // the current work of a run
	result(p *pass)              // the outcome of a run
	close()                      // gives the terminal back; a second call does nothing
}

// newDisplay is a screen on a terminal, and lines elsewhere.
func newDisplay(w *watching) display {
	var to io.Writer = w.c.App.Writer
	if out, ok := to.(*output); ok {
		if f, ok := out.Writer.(*os.File); ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb" {
			return newScreen(w, f)
		}
	}
	l := &linesDisplay{to: to, quiet: w.c.Bool("quiet"), style: w.out.style}
	if !l.quiet {
		fmt.Fprintf(to, "watching %s (%s); Ctrl-C ends\n", w.shown, amount.Of(w.watcher.Folders, "folder"))
	}
	return l
}

// linesDisplay writes a few lines for each run.
type linesDisplay struct {
	to    io.Writer
	quiet bool
	style text.Style
}

func (l *linesDisplay) state(*pass, string) {}
func (l *linesDisplay) close()              {}

func (l *linesDisplay) result(p *pass) {
	if l.quiet {
		fmt.Fprintln(l.to, p.verdict(l.style))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, took %s\n", p.head(), p.duration())
	if p.err != nil {
		for _, line := range p.said {
			fmt.Fprintln(&b, "  "+line)
		}
	}
	if p.since != "" {
		fmt.Fprintf(&b, "first divergence: %s\n", plain.Text(p.since))
	}
	for _, note := range p.notes() {
		fmt.Fprintln(&b, note)
	}
	fmt.Fprintln(&b, p.verdict(l.style))
	if p.err != nil && p.built == "" {
		fmt.Fprintf(&b, "hint: %s\n", plain.Text(oneLine(advice.Hint(p.err))))
	}
	fmt.Fprint(l.to, b.String())
}

// The sequences for a terminal; tmux and similar programs know all of them.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	restOfLine  = "\x1b[K"
	restBelow   = "\x1b[J"
)

// screen draws the whole screen again at each change.
type screen struct {
	mu     sync.Mutex
	f      *os.File
	style  text.Style
	title  string
	doing  string // of the current run; empty between runs
	last   *pass  // the last run that ended
	closed bool
	stop   func() // ends the handling of signals
}

func newScreen(w *watching, f *os.File) *screen {
	s := &screen{f: f, style: w.out.style, title: fmt.Sprintf("tracediff watch: %s (%s)", plain.Text(w.shown), amount.Of(w.watcher.Folders, "folder"))}
	s.write(enterScreen)
	s.stop = s.signals()
	return s
}

// write is the only function that writes to the terminal. It ignores errors: a closed terminal sends a signal.
func (s *screen) write(text string) { _, _ = s.f.WriteString(text) }

func (s *screen) state(p *pass, doing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doing = p.head() + ": " + plain.Text(doing)
	s.draw()
}

func (s *screen) result(p *pass) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doing, s.last = "", p
	s.draw()
}

// close gives the terminal back and leaves the last verdict on it.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.stop()
	s.write(leaveScreen)
	if s.last != nil {
		s.write(fmt.Sprintf("watch ended after %s\n%s\n", amount.Of(s.last.number, "run"), s.last.verdict(s.style)))
	}
}

// draw writes the whole screen in one go. The caller holds the lock.
func (s *screen) draw() {
	if s.closed {
		return
	}
	columns, rows, err := cwriter.GetSize(int(s.f.Fd()))
	if err != nil || columns < 20 || rows < 3 {
		columns, rows = 80, 24
	}
	var lines []string
	for _, line := range s.lines(columns, rows) {
		lines = append(lines, folded(line, columns)...)
	}
	if len(lines) > rows {
		lines = append(lines[:rows-1], "...")
	}
	s.write(home + strings.Join(lines, restOfLine+"\r\n") + restOfLine + restBelow)
}

// lines are the lines of the screen, most important first, since the end is cut off on a small screen. Of the output of a command,
// the beginning is cut off, since the reason of a failure stands at the end.
func (s *screen) lines(columns, rows int) []string {
	lines := []string{s.title}
	p := s.last
	if s.doing != "" {
		lines = append(lines, s.doing+" ...")
	} else if p != nil {
		lines = append(lines, fmt.Sprintf("%s, took %s; the next change runs it again, Ctrl-C ends", p.head(), p.duration()))
	}
	if p == nil {
		return lines
	}
	lines = append(lines, "")
	if s.doing != "" {
		lines = append(lines, fmt.Sprintf("run %d, took %s:", p.number, p.duration()))
	}
	lines = append(lines, p.verdict(s.style))
	if p.since != "" {
		lines = append(lines, "first divergence: "+plain.Text(p.since))
	}
	lines = append(lines, p.notes()...)
	if p.err == nil {
		return append(append(lines, ""), text.Screen(words.Of(p.result), s.style, columns)...)
	}
	var hint []string
	if p.built == "" {
		hint = []string{"hint: " + plain.Text(oneLine(advice.Hint(p.err)))}
	}
	room := rows - height(lines, columns)
	if height(hint, columns) >= room { // the output says more than the hint
		hint = nil
	}
	room -= height(hint, columns)
	said := p.said
	for len(said) > 1 && height(said, columns) > room {
		said = said[1:]
	}
	return slices.Concat(lines, said, hint)
}

// height is the number of rows that lines take on a terminal.
func height(lines []string, columns int) int {
	rows := 0
	for _, line := range lines {
		rows += len(folded(line, columns))
	}
	return rows
}

// folded breaks a line at the width of the terminal, between words if possible. Sequences for colours have no
// width.
func folded(line string, columns int) []string {
	var out []string
	for {
		at, space, width := 0, 0, 0
		for at < len(line) && width <= columns {
			if end := strings.IndexByte(line[at:], 'm'); strings.HasPrefix(line[at:], "\x1b[") && end > 0 {
				at += end + 1
				continue
			}
			if line[at] == ' ' && width > 2 {
				space = at
			}
			if width == columns {
				break
			}
			_, size := utf8.DecodeRuneInString(line[at:])
			at, width = at+size, width+1
		}
		if at >= len(line) {
			return append(out, line)
		}
		if space > 0 {
			at = space
		}
		out = append(out, line[:at])
		line = "  " + strings.TrimLeft(line[at:], " ")
	}
}
