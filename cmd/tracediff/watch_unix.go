//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// signals draws the screen again after a change of size. It gives the terminal back while the program is stopped (Ctrl-Z), and takes
// the terminal again when the program continues. stop ends the handling of signals.
func (s *screen) signals() (stop func()) {
	changes := make(chan os.Signal, 4)
	signal.Notify(changes, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case got := <-changes:
				s.signalled(got)
			}
		}
	}()
	return func() {
		signal.Stop(changes)
		close(done)
	}
}

func (s *screen) signalled(got os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if got == syscall.SIGTSTP {
		s.write(leaveScreen)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // an error cannot be handled
		return                                         // SIGCONT follows
	}
	if got == syscall.SIGCONT {
		s.write(enterScreen)
	}
	s.draw()
}
