package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/tracediff/tracediff/internal/files"
)

// Process is the running program, shared by all of its sessions.
type Process struct {
	started fs.FileInfo // the program's file when it began to run
	err     error       // of looking at it
}

// NewProcess looks at the program that runs, which has just begun to.
func NewProcess() *Process {
	p := &Process{}
	p.started, p.err = os.Stat(executable())
	return p
}

// executable is the path of the running program. On Linux this path stays the program's own if another file takes the place of the program's file.
func executable() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}

// Sum returns the SHA-256 of the running program, in hexadecimal. It returns an error if the executable was
// replaced since the start, or cannot be read.
func (p *Process) Sum() (string, error) {
	if p == nil {
		return "", errors.New("which program runs is not known")
	}
	if p.err != nil {
		return "", p.err
	}
	f, info, err := files.Open(executable())
	if err != nil {
		return "", err
	}
	defer f.Close()
	if !os.SameFile(info, p.started) || info.Size() != p.started.Size() || !info.ModTime().Equal(p.started.ModTime()) {
		return "", errors.New("another program has taken the place of the one that runs")
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
