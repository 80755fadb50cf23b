package gatefile

import (
	"os"
	"path/filepath"
	"strings"
)

// Here is the working directory; empty where that is not known, or is the root, below which everything is.
func Here() string {
	folder, err := os.Getwd()
	if err != nil || filepath.Dir(folder) == folder {
		return ""
	}
	return folder
}

// Below makes the paths in a text that begin with folder relative to folder.
func Below(text, folder string) string {
	if folder == "" {
		return text
	}
	return Elsewhere(text, folder+string(filepath.Separator), "")
}

// Elsewhere replaces the prefix of the paths in a text by place.
func Elsewhere(text, prefix, place string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, prefix)
		if at < 0 {
			return b.String() + text
		}
		b.WriteString(text[:at])
		if at == 0 && b.Len() == 0 || at > 0 && strings.ContainsRune(" \t\n\"'`=:,;([{<>|&", rune(text[at-1])) {
			b.WriteString(place)
		} else { // inside of a longer path
			b.WriteString(prefix)
		}
		text = text[at+len(prefix):]
	}
}
