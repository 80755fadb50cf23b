package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version, the commit and what built it",
		Description: `One line: the version, in brackets the commit if it is known, the Go version and the platform.

Example:
  tracediff version`,
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return printVersion(c.App.Writer)
		},
	}
}

// printVersion prints "tracediff v0.6.0 (commit 0123456789ab, modified), go1.26.0 linux/amd64".
func printVersion(w io.Writer) error {
	name, commit := "devel", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" && info.Main.Version != "(devel)" {
			name = info.Main.Version
		}
		commit = commitOf(info.Settings)
	}
	_, err := fmt.Fprintf(w, "tracediff %s (commit %s), %s %s/%s\n", name, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// commitOf is the commit recorded in a build, shortened, with ", modified" for changed files. go run and builds
// outside a checkout record no commit.
func commitOf(settings []debug.BuildSetting) string {
	const short = 12
	commit, modified := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(short, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	if commit == "" {
		return "unknown"
	}
	return commit + modified
}

// version is the version of this build for manifests and reports: the commit, or else the version of the module.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	if info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
