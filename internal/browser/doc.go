// Package browser has no code: its tests open the HTML reports in a real Chromium. It is a module of its own, so that nothing else
// depends on what drives the browser.
//
// The pages are made by a test of cmd/tracediff, and kept in a folder:
//
//	export TRACEDIFF_PAGES=$(mktemp -d)
//	go test ./cmd/tracediff -run TestPages
//	cd internal/browser && go test ./...
//
// go test ./... -update also writes the screenshots of docs.
package browser
