package choice

import (
	"sync/atomic"
	"testing"
)

// told is a Progress that keeps what it is told.
type told struct {
	at, all int
	most    int64 // bytes
	bytes   func() int64
}

func (p *told) Step(pass, passes, at, steps int) {
	p.at, p.all = pass*steps+at, passes*steps
	p.most = max(p.most, p.bytes())
}

func (*told) Doing(string) {}
func (*told) Done()        {}

// What another process writes is followed by its bytes, to the end and not beyond it.
func TestFollow(t *testing.T) {
	var bytes atomic.Int64
	p := &told{bytes: bytes.Load}
	began := make(chan struct{}, 1)
	stop := follow(p, func() int64 {
		n := bytes.Load()
		select {
		case began <- struct{}{}:
		default:
		}
		return n
	}, 10e6)
	<-began // nothing was written until then
	bytes.Store(7e6)
	stop()
	if p.at != 7 || p.all != 10 || p.most != 7e6 {
		t.Errorf("at %d of %d", p.at, p.all)
	}
	bytes.Store(90e6) // more than was estimated
	follow(p, bytes.Load, 10e6)()
	if p.at != 10 || p.all != 10 {
		t.Errorf("at %d of %d", p.at, p.all)
	}
	follow(p, bytes.Load, 0)()
	if p.at != 1 || p.all != 1 {
		t.Errorf("of nothing: at %d of %d", p.at, p.all)
	}
}
