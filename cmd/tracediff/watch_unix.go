//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// signals draws the screen again when its size has changed, gives the terminal back while the program is stopped (Ctrl-Z), and takes
// it again. The function that is returned ends that.
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
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // nothing can be done where that is not allowed
		return                                         // SIGCONT comes next
	}
	if got == syscall.SIGCONT {
		s.write(enterScreen)
	}
	s.draw()
}
