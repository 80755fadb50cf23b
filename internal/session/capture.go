package session

import (
	"context"
)

// Prepare opens what a capture is about, finds the reference where one is wanted, and keeps the settings for the next
// comparison. What a command writes now is wanted, whatever it wrote before. The caller closes the job and the reference.
func Prepare(ctx context.Context, e *Env, s Settings, local, ref bool) (_ *Job, _ *Found, err error) {
	j, err := Open(s, e.Dir)
	if err != nil {
		return nil, nil, err
	}
	var found *Found
	defer func() {
		if err != nil {
			_ = j.Close() // read only
			if found != nil {
				_ = found.Close()
			}
		}
	}()
	if local {
		if err := j.checkLocal(e); err != nil {
			return nil, nil, err
		}
	}
	if ref {
		if found, err = j.findReference(ctx, e, true); err != nil {
			return nil, nil, err
		}
		j.replay(found.passes)
	}
	if err := j.checkPasses(); err != nil {
		return nil, nil, err
	}
	return j, found, j.save()
}

// Keep puts the reference beside the local trace, with its noise floor in the store, and returns where.
func (j *Job) Keep(ctx context.Context, e *Env, f *Found) (path string, err error) {
	if err := j.measureFloor(ctx, e, f); err != nil {
		return "", err
	}
	return j.dump(f)
}
