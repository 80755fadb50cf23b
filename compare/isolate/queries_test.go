package isolate_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// What is said of attention in one kernel does not depend on how many queries are computed at one time: in pieces, too, it is certified in its kernel.
func TestFusedAttentionSomeQueriesAtATime(t *testing.T) {
	ctx := t.Context()
	trace, err := capture.Open(filepath.FromSlash("../../fixtures/foreign/fused/declared.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trace.Close() })
	want := map[string]string{}
	for _, block := range []int{isolate.BlockElements, 1} {
		i, pieces := isolatorIn(t, trace, "llama-tiny"), 0
		i.Block = block
		for _, r := range trace.Records() {
			if !strings.HasSuffix(r.Name, ".self_attn.context") {
				continue
			}
			of, err := i.Unread(order.Node{Entry: i.List().Index(r.Name), Pass: r.Pass}, i.Has)
			if err != nil {
				t.Fatal(err)
			}
			if of.Pieces() > 0 {
				pieces++
				if c, err := isolate.InBlocks(ctx, of); c == nil || err != nil {
					t.Errorf("%s is not certified some queries at a time: %v", r.Key, err)
				}
			}
			c, err := i.Certify(t.Context(), r.Name, r.Pass)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%+v", *c); block == isolate.BlockElements {
				want[r.Key] = got
				if c.Arithmetic == string(isolate.Strict) || !c.Good() {
					t.Errorf("%s is not certified in a kernel: %s", r.Key, got)
				}
			} else if got != want[r.Key] {
				t.Errorf("%s in pieces:\n%s, want\n%s", r.Key, got, want[r.Key])
			}
		}
		if len(want) == 0 || (block == 1) != (pieces == len(want)) {
			t.Errorf("blocks of %d elements: %d of %d entries in pieces", block, pieces, len(want))
		}
	}
}
