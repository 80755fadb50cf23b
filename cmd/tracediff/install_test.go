package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// .ci/install puts in place what the release has: an archive with the checksum of SHA256SUMS and, where there are attestations, one that holds. In each other
// case, and where it cannot be known whether there are any, it ends with status 2 and nothing is installed.
func TestInstall(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs linux: the archive of another machine is asked for elsewhere")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	for name, c := range map[string]struct {
		version, api, verify string // what gh does when it is asked for attestations, and to verify one
		spoilt               bool   // the archive is not the one of SHA256SUMS
		status               int
		says                 string
	}{
		"attested":              {api: "exit 0", verify: "exit 0", says: "the program of the release"},
		"attested by another":   {api: "exit 0", verify: "exit 1", status: 2, says: "its attestation does not hold"},
		"none":                  {api: "echo 'gh: Not Found (HTTP 404)' >&2; exit 1", verify: "exit 1", says: "no attestation"},
		"no answer":             {api: "echo 'gh: API rate limit exceeded (HTTP 403)' >&2; exit 1", verify: "exit 0", status: 2, says: "HTTP 403"},
		"another archive":       {api: "exit 0", verify: "exit 0", spoilt: true, status: 2, says: "has the checksum"},
		"a branch":              {version: "main", api: "exit 0", verify: "exit 0", status: 2, says: `"main" is no release`},
		"a path":                {version: "v1.2.3-../../x", api: "exit 0", verify: "exit 0", status: 2, says: "is no release"},
		"a release that is not": {version: "v9.9.9", api: "exit 0", verify: "exit 0", status: 2, says: "not downloaded"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			release, commands, place := filepath.Join(folder, "v1.2.3"), filepath.Join(folder, "commands"), filepath.Join(folder, "place")
			must(t, os.MkdirAll(release, 0o777))
			must(t, os.MkdirAll(commands, 0o777))
			archive := "tracediff-v1.2.3-linux-" + runtime.GOARCH
			data := packed(t, archive+"/tracediff", "#!/bin/sh\necho the program of the release\n")
			sum := sha256.Sum256(data)
			if c.spoilt {
				data = append(data, 0)
			}
			must(t, os.WriteFile(filepath.Join(release, archive+".tar.gz"), data, 0o666))
			must(t, os.WriteFile(filepath.Join(release, "SHA256SUMS"), fmt.Appendf(nil, "%x  %s.tar.gz\n", sum, archive), 0o666))
			// The release is in a folder, and GitHub answers as the case says.
			for command, text := range map[string]string{
				"curl": "for last; do :; done\nwhile [ $# -gt 0 ]; do [ \"$1\" != --output ] || to=$2; shift; done\ncp \"" + folder + "/${last#*/releases/download/}\" \"$to\"\n",
				"gh":   "case $1 in api) " + c.api + " ;; attestation) " + c.verify + " ;; esac\n",
			} {
				must(t, os.WriteFile(filepath.Join(commands, command), []byte("#!/bin/sh\n"+text), 0o777))
			}
			version := c.version
			if version == "" {
				version = "v1.2.3"
			}
			cmd := exec.Command("bash", filepath.Join(sources(t), ".ci/install"), version, place)
			cmd.Env = []string{"PATH=" + commands + ":/usr/bin:/bin", "GH_TOKEN=token", "TMPDIR=" + folder}
			said, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(string(said), c.says) {
				t.Errorf("status %d, want %d and %q:\n%s", status, c.status, c.says, said)
			}
			if _, err := os.Stat(filepath.Join(place, "tracediff")); (err == nil) != (c.status == 0) {
				t.Errorf("status %d, and the program: %v", c.status, err)
			}
		})
	}
}

// packed is an archive with one program in it.
func packed(t *testing.T, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}))
	_, err := w.Write([]byte(text))
	must(t, err)
	must(t, w.Close())
	must(t, zip.Close())
	return out.Bytes()
}
