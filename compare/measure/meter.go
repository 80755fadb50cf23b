package measure

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/internal/lanes"

	"github.com/tracediff/tracediff/order"
)

// maxWorkers bounds the workers that nobody asked for: more of them would wait for memory, not for a processor.
const maxWorkers = 16

// readers is the number of blocks read while others are measured: a read sleeps until its disk answers.
const readers = 2

// Meter measures pairs of tensors, several blocks and several tensors at a time. Blocks are read and measured by whoever
// is free and merged in the order of their numbers, by the worker that measured them. So nothing is held but what the
// workers are at, and neither memory nor results depend on how much is measured and by how many.
//
// Tensors are measured ahead of the walk, but no more than some blocks of them: what is read beyond the first divergence is
// bounded.
type Meter struct {
	compute chan struct{} // has a place for each worker that measures

	prepared map[string]*job // by key in the reference trace: started, and not asked for yet
	blocks   int             // of prepared jobs, at least one each
	maxAhead int             // bounds them, and apart from that the blocks taken of them

	mu      sync.Mutex
	changed sync.Cond // of mu: there may be something to take or to merge
	queue   []*job    // jobs with blocks to take
	ahead   int       // blocks taken of jobs that were not asked for yet
	closed  bool
	running sync.WaitGroup
}

// job is a measurement on its way.
type job struct {
	measurement
	sums   *Sums
	blocks int

	// mu of the meter guards these, and sums; those and err are final when finished is closed.
	taken, merged int
	due           int  // blocks to merge: all, or after an error those that were taken
	asked         bool // the walk waits for it
	err           error
	finished      chan struct{}
}

// NewMeter starts workers: as many as there are processors where workers is 0.
func NewMeter(workers int) *Meter {
	if workers <= 0 {
		workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	m := &Meter{compute: make(chan struct{}, workers), maxAhead: 2 * (workers + readers), prepared: map[string]*job{}}
	m.changed.L = &m.mu
	for range workers + readers {
		m.running.Go(m.work)
	}
	return m
}

// Close stops the workers and waits for them: after it nothing is read any more.
func (m *Meter) Close() {
	m.mu.Lock()
	m.closed = true
	m.changed.Broadcast()
	m.mu.Unlock()
	m.running.Wait()
}

// Measure measures two views of one shape by a rule. The error is the first block's read error, or the context's.
func (m *Meter) Measure(ctx context.Context, l, r View, rule order.Rule, tokens bool) (*Sums, error) {
	j, ok := m.prepared[r.Rec.Key]
	if ok {
		delete(m.prepared, r.Rec.Key)
		m.blocks -= max(j.blocks, 1)
	} else {
		j = m.start(newMeasurement(l, r, rule, tokens))
	}
	p, err := m.wait(ctx, j)
	if err != nil {
		return nil, err
	}
	if scale := p.rescale(); scale != 1 {
		what := newMeasurement(l, r, rule, tokens)
		what.scale = scale
		return m.wait(ctx, m.start(what))
	}
	return p, nil
}

// Alone measures a single view, which stands for both sides: the sums of squares of scale times each element, in total and for every slice.
func (m *Meter) Alone(ctx context.Context, v View, scale float64) (*Sums, error) {
	what := newMeasurement(v, v, order.All, false)
	what.alone, what.scale = true, scale
	return m.wait(ctx, m.start(what))
}

// Prepare starts what [Meter.Measure] will be asked for with the same arguments, once for each tensor of the reference.
func (m *Meter) Prepare(l, r View, rule order.Rule, tokens bool) {
	j := m.start(newMeasurement(l, r, rule, tokens))
	m.prepared[r.Rec.Key] = j
	m.blocks += max(j.blocks, 1)
}

// Full reports whether enough is prepared.
func (m *Meter) Full() bool { return m.blocks >= m.maxAhead }

func (m *Meter) start(what measurement) *job {
	what.fusible()
	what.far = new(atomic.Uint64)
	j := &job{measurement: what, blocks: (what.elements + lanes.Block - 1) / lanes.Block, finished: make(chan struct{})}
	j.sums, j.due = newSums(&j.measurement), j.blocks
	if j.blocks == 0 {
		close(j.finished)
		return j
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = append(m.queue, j)
	m.changed.Broadcast()
	return j
}

// wait gives the workers a job before any other, and returns the result.
func (m *Meter) wait(ctx context.Context, j *job) (*Sums, error) {
	m.mu.Lock()
	j.asked = true
	m.ahead -= j.taken
	m.changed.Broadcast()
	m.mu.Unlock()
	select {
	case <-j.finished:
		return j.sums, j.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work takes block after block until the meter is closed.
func (m *Meter) work() {
	b := &block{}
	for {
		j, k := m.take()
		if j == nil {
			return
		}
		b.begin(&j.measurement, k)
		err := b.read(&j.measurement)
		if err == nil {
			m.compute <- struct{}{}
			err = b.measure(&j.measurement)
			<-m.compute
		}
		m.merge(j, k, b, err)
	}
}

// take waits for a block to measure; nil when the meter was closed.
func (m *Meter) take() (j *job, block int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for !m.closed {
		i := slices.IndexFunc(m.queue, func(j *job) bool { return j.asked })
		if i < 0 && m.ahead < m.maxAhead && len(m.queue) > 0 {
			i = 0
		}
		if i < 0 {
			m.changed.Wait()
			continue
		}
		j := m.queue[i]
		if !j.asked {
			m.ahead++
		}
		j.taken++
		if j.taken == j.blocks {
			m.queue = slices.Delete(m.queue, i, i+1)
		}
		return j, j.taken - 1
	}
	return nil, 0
}

// merge waits for block k's turn and adds the block to the job. Blocks are taken in order, so earlier blocks are under way.
func (m *Meter) merge(j *job, k int, b *block, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for j.merged < k && !m.closed {
		m.changed.Wait()
	}
	if m.closed {
		return
	}
	switch {
	case j.err != nil:
	case err != nil: // the blocks that nobody has taken are not needed any more
		j.err, j.due = err, j.taken
		m.queue = slices.DeleteFunc(m.queue, func(other *job) bool { return other == j })
	default:
		m.mu.Unlock() // the sums belong to this worker until merged is raised
		j.sums.merge(b, j.last)
		j.far.Store(math.Float64bits(j.sums.most.by))
		m.mu.Lock()
	}
	if j.merged++; j.merged == j.due {
		close(j.finished)
	}
	m.changed.Broadcast()
}
