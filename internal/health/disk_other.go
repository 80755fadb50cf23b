//go:build !linux && !darwin && !freebsd && !windows

package health

func writable(string) error { return nil }

func free(string) (int64, error) { return -1, nil }
