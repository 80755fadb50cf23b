//go:build !unix

package reference_test

import "testing"

func TestValuesReachTheProgram(t *testing.T) { t.Skip("needs unix: a POSIX shell and signals") }

func TestExpand(t *testing.T) { t.Skip("needs unix: a POSIX shell and signals") }

func TestInterruptEndsTheWholeGroup(t *testing.T) { t.Skip("needs unix: a POSIX shell and signals") }

func TestRunJudgesTheTrace(t *testing.T) { t.Skip("needs unix: a POSIX shell and signals") }
