package tracefolder

import "testing"

// What a run that was killed leaves of the files beside a stored trace is known as a leftover; what only looks like it is not.
func TestLeftoversOfTheStoreAreKnown(t *testing.T) {
	for name, want := range map[string]string{
		"references/0123456789abcdef.json-17.part":       FileLeft,
		"references/0123456789abcdef.floor.json-17.part": FileLeft,
		"floors/0123456789abcdef.json-17.part":           FileLeft,
		"floors/0123456789abcdef.floor.json-17.part":     FileForeign,
		"references/notes.json-17.part":                  FileForeign,
		"references/0123456789abcdef.json":               FileStored,
		"ports/model.gguf-0123456789abcdef/port.json":    FileHanded,
		"ports/model.gguf-0123456789abcdef/notes.txt":    FileForeign,
		"ports/new-17.tmp/model.safetensors":             FileLeft,
	} {
		if got := FileKind(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
