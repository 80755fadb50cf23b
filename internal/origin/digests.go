package origin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// Digest returns the digest of a checkpoint's weights. The digest of a large checkpoint is cached in the user's
// cache folder, and stays valid until a file of the checkpoint changes.
func Digest(ctx context.Context, e *settings.Env, ck *checkpoint.Checkpoint, scheme checkpoint.Scheme) (string, error) {
	if ck.Size() <= checkpoint.Large {
		return checkpoint.NewDigests("").Compute(ctx, ck, scheme, func(int64, int64) {})
	}
	all := checkpoint.UserDigests()
	if sum, ok := all.Cached(ck, scheme); ok {
		return sum, nil
	}
	const mega = 1e6
	p := e.Begin("hashing the weights", "MB", nil)
	defer p.Done()
	return all.Compute(ctx, ck, scheme, func(done, all int64) { p.Step(0, 1, int(done/mega), int(all/mega)) })
}

// HasOthers reports whether a checkpoint's weights differ from the weights of a digest. It returns false for an
// unknown digest. It shows no progress: a caller with a progress display calls [Digest] first.
func HasOthers(ck *checkpoint.Checkpoint, digest string) bool {
	if !KnownDigest(digest) {
		return false
	}
	scheme, ok := checkpoint.SchemeOf(digest)
	if !ok {
		return true
	}
	sum, err := Digest(context.Background(), nil, ck, scheme)
	return err != nil || sum != digest // one that changes as it is read is no checkpoint of anything
}

// OthersThan returns a sentence if a checkpoint has other weights than the weights of the trace, and "" if the
// weights are equal or unknown. Values computed with other weights cannot prove the trace's model right.
func OthersThan(ck *checkpoint.Checkpoint, t *capture.Trace) string {
	if !HasOthers(ck, t.Manifest().Weights) {
		return ""
	}
	return fmt.Sprintf("the weights of %s are not those that the reference was made from", ck.Name())
}

// ConfiguredOtherwise returns a sentence if a checkpoint and a reference declare different configurations. Entries
// are computed by the reference's configuration, so the checkpoint's own is otherwise ignored. The result is "" if
// every common key has equal values.
func ConfiguredOtherwise(ck *checkpoint.Checkpoint, ref *capture.Trace) string {
	config, err := order.ReadConfig(ck.Config())
	if err != nil || ref.Manifest().Config == nil {
		return ""
	}
	var named, theirs map[string]json.RawMessage
	if json.Unmarshal(config.Canonical(), &named) != nil || json.Unmarshal(ref.Manifest().Config, &theirs) != nil {
		return ""
	}
	var differ []string
	for _, key := range slices.Sorted(maps.Keys(named)) {
		if v, declared := theirs[key]; declared && !order.SameConfig(named[key], v) {
			differ = append(differ, plain.Text(key))
		}
	}
	if len(differ) == 0 {
		return ""
	}
	return fmt.Sprintf("the configuration of %s differs from the reference's, in %s; capture the reference from the model", ck.Name(), strings.Join(differ, ", "))
}

// KnownDigest reports whether a manifest says which weights were used: a recorder without their digest writes nothing, or "unknown".
func KnownDigest(d string) bool { return d != "" && d != "unknown" }

// hashed computes the digest of a checkpoint's weights, in the scheme of the trace's digest.
func hashed(ctx context.Context, e *settings.Env, ck *checkpoint.Checkpoint, m capture.Manifest) error {
	scheme, ok := checkpoint.SchemeOf(m.Weights)
	if !ok {
		return nil
	}
	_, err := Digest(ctx, e, ck, scheme)
	return err
}

// itsWeights says that nothing but the weights keeps a checkpoint from being the one of a trace.
const itsWeights = "its weights differ"

// NotOf says what keeps a checkpoint from being the one of a trace; empty when nothing is known to.
func NotOf(ck *checkpoint.Checkpoint, m capture.Manifest) string {
	config, err := order.ReadConfig(ck.Config())
	switch {
	case order.Undescribed(err) && m.Config == nil: // of a family without an order, no configuration is known
	case err != nil:
		return err.Error()
	case m.Config != nil && !order.SameConfig(m.Config, config.Canonical()):
		return "its configuration differs"
	case HasOthers(ck, m.Weights):
		return itsWeights
	}
	return ""
}
