// Package origin finds the checkpoint of a trace. It also says why a checkpoint is not the trace's own: a different
// configuration, or different weights.
package origin

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
	"github.com/tracediff/tracediff/order"
)

// Of opens the checkpoint of a trace: the named directory, an embedded checkpoint with the same weights, or the
// directory in the trace's manifest if its weights are unchanged. It returns nil if there is no such checkpoint. If
// the trace was made with other weights than the weights of dir, the file of the port's own weights may match;
// weights is the path of this file, or empty.
func Of(ctx context.Context, e *settings.Env, dir, weights string, t *capture.Trace) (*checkpoint.Checkpoint, error) {
	m := t.Manifest()
	if dir != "" {
		ck, err := checkpoint.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		if err := hashed(ctx, e, ck, m); err != nil {
			return nil, hint.Also(err, ck.Close())
		}
		why := NotOf(ck, m)
		if why == "" || why == itsWeights && weights != "" {
			return ck, nil
		}
		next := "--model names the checkpoint that your port's trace was made from"
		if why == itsWeights && m.Port.File != "" {
			next = "it was made with the weights of a port: --weights " + plain.QuoteShell(plain.Text(m.Port.File)) + " names them, in addition to --model"
		}
		return nil, hint.Also(hint.Add(fmt.Errorf("%s is not the checkpoint of %s: %s", dir, t.Path(), why), next), ck.Close())
	}
	if ck, err := embeddedCheckpoint(m); ck != nil || err != nil {
		return ck, err
	}
	ck, err := checkpoint.Open(m.Model)
	if err != nil { // a name, or a directory that is gone: nobody asked for it
		return nil, nil
	}
	if err := hashed(ctx, e, ck, m); err != nil {
		return nil, hint.Also(err, ck.Close())
	}
	if m.Config == nil && !KnownDigest(m.Weights) || NotOf(ck, m) != "" { // a recorder that runs inside the engine knows no configuration
		return nil, ck.Close()
	}
	return ck, nil
}

// embeddedCheckpoint opens the embedded checkpoint with the configuration and the weights of a trace, nil where none has both. Of the
// others no more than the configuration is read.
func embeddedCheckpoint(m capture.Manifest) (*checkpoint.Checkpoint, error) {
	if m.Config == nil || !KnownDigest(m.Weights) {
		return nil, nil
	}
	configs, err := fs.Glob(fixtures.Files, "*/"+checkpoint.ConfigFile)
	if err != nil {
		return nil, err
	}
	for _, name := range configs {
		files, err := fs.Sub(fixtures.Files, path.Dir(name))
		if err != nil {
			return nil, err
		}
		text, err := checkpoint.ReadConfig(files)
		if err != nil {
			return nil, err
		}
		if config, err := order.ReadConfig(text); err != nil || !order.SameConfig(m.Config, config.Canonical()) {
			continue
		}
		ck, err := checkpoint.OpenFS("fixtures/"+path.Dir(name), files)
		if err != nil || NotOf(ck, m) == "" {
			return ck, err
		}
		if err := ck.Close(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Common opens the checkpoint for a comparison of two traces. This is the local trace's checkpoint. If it is
// unknown or differs from the reference's weights, Common opens the reference's checkpoint, unless the local trace
// declares a different one. A single trace is certified only by its own checkpoint. Common returns nil if it finds
// no checkpoint.
func Common(ctx context.Context, e *settings.Env, dir, weights string, local, ref *capture.Trace) (*checkpoint.Checkpoint, error) {
	ck, err := Of(ctx, e, dir, weights, local)
	if err != nil || local == ref || ck != nil && (dir != "" || OthersThan(ck, ref) == "") {
		return ck, err
	}
	of, err := Of(ctx, e, "", "", ref)
	if err != nil || of == nil {
		return ck, err
	}
	if isPort(of) && local.Manifest().Weights != ref.Manifest().Weights { // of a port the local trace says nothing
		return ck, of.Close()
	}
	if NotOf(of, local.Manifest()) != "" {
		return ck, of.Close()
	}
	if ck != nil {
		err = ck.Close()
	}
	return of, err
}

// isPort reports whether a checkpoint is the weights of a port that were read before.
func isPort(ck *checkpoint.Checkpoint) bool {
	_, err := os.Stat(filepath.Join(ck.Name(), tracefolder.PortFile))
	return err == nil
}
