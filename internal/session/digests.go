package session

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
	"github.com/tracediff/tracediff/order"
)

// weightsDigest is the digest of a checkpoint's weights. Large ones are hashed once and remembered in the user's
// cache folder as long as their files stay as they are.
func weightsDigest(ctx context.Context, e *Env, ck *checkpoint.Checkpoint, scheme checkpoint.Scheme) (string, error) {
	if ck.Size() <= checkpoint.Large {
		return checkpoint.NewDigests("").Compute(ctx, ck, scheme, func(int64, int64) {})
	}
	all := checkpoint.UserDigests()
	if sum, ok := all.Cached(ck, scheme); ok {
		return sum, nil
	}
	const mega = 1e6
	p := e.progress("hashing the weights", "MB", nil)
	defer p.Done()
	return all.Compute(ctx, ck, scheme, func(done, all int64) { p.Step(0, 1, int(done/mega), int(all/mega)) })
}

// hasOthers reports whether a checkpoint has other weights than those of a digest; not where no digest is known. Who can tell progress
// has called weightsDigest before.
func hasOthers(ck *checkpoint.Checkpoint, digest string) bool {
	if !knownDigest(digest) {
		return false
	}
	scheme, ok := checkpoint.SchemeOf(digest)
	if !ok {
		return true
	}
	sum, err := weightsDigest(context.Background(), nil, ck, scheme)
	return err != nil || sum != digest // one that changes as it is read is no checkpoint of anything
}

// othersThan says that a checkpoint has other weights than those that a trace was made of; empty where that is not known.
// What they compute is then no reason to call the trace's model right.
func othersThan(ck *checkpoint.Checkpoint, t *capture.Trace) string {
	if !hasOthers(ck, t.Manifest().Weights) {
		return ""
	}
	return fmt.Sprintf("the weights of %s are not those that the reference was made of", ck.Name())
}

// configuredOtherwise says that a checkpoint has another configuration than the one that a reference declares. Entries are computed by the reference's
// configuration, so that nothing is compared with the checkpoint's. The result is empty if no key that both have differs.
func configuredOtherwise(ck *checkpoint.Checkpoint, ref *capture.Trace) string {
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
	return fmt.Sprintf("%s has another configuration than the reference, in %s; capture the reference from the model", ck.Name(), strings.Join(differ, ", "))
}

func knownDigest(d string) bool { return d != "" && d != "unknown" }

// hashed has the weights of a checkpoint hashed as those of a trace are.
func hashed(ctx context.Context, e *Env, ck *checkpoint.Checkpoint, m capture.Manifest) error {
	scheme, ok := checkpoint.SchemeOf(m.Weights)
	if !ok {
		return nil
	}
	_, err := weightsDigest(ctx, e, ck, scheme)
	return err
}

// itsWeights says that nothing but the weights keeps a checkpoint from being the one of a trace.
const itsWeights = "its weights differ"

// notOf says what keeps a checkpoint from being the one of a trace; empty when nothing is known to.
func notOf(ck *checkpoint.Checkpoint, m capture.Manifest) string {
	config, err := order.ReadConfig(ck.Config())
	switch {
	case order.Undescribed(err) && m.Config == nil: // of a family without an order, no configuration is known
	case err != nil:
		return err.Error()
	case m.Config != nil && !order.SameConfig(m.Config, config.Canonical()):
		return "its configuration differs"
	case hasOthers(ck, m.Weights):
		return itsWeights
	}
	return ""
}
