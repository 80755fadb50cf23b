//go:build !linux

package capture

import "os"

func mapFile(*os.File, int64, int) []byte { return nil }

func unmapFile([]byte) {}

func unmapPages([]byte) {}

func inMemory(*os.File, int64, int) bool { return false }
