package foreign_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture/foreign"
)

// A file of more tensors than any dump has is refused before they are listed. One that a recorder of tracediff wrote may have as many.
func TestSafetensorsHaveBounds(t *testing.T) {
	for _, metadata := range []string{"", `"__metadata__":{"tracediff.version":"1"},`} {
		header := []byte("{" + metadata)
		for i := range 1<<17 + 1 {
			header = fmt.Appendf(header, `"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},`, i)
		}
		header[len(header)-1] = '}'
		path := filepath.Join(t.TempDir(), "many.safetensors")
		if err := os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := foreign.Open(path); err != nil && strings.Contains(err.Error(), "131073 tensors, more than 131072") != (metadata == "") || err == nil && metadata == "" {
			t.Error(err)
		}
	}
}
