// Package python embeds the transformers runner and the versions it is pinned to, so that the program can run it with any
// interpreter that has torch and transformers, and nothing of a checkout.
package python

import "embed"

// Files holds tracediff/*.py, one importable package without its tests, and requirements.txt.
//
//go:embed tracediff/*.py requirements.txt
var Files embed.FS
