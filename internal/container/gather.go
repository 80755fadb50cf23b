package container

const (
	// window is the most of a storage that is held while elements are gathered from it, in bytes.
	window = 8 << 20
	// dear is the cost of a separate read, in bytes that a copy moves in the same time.
	dear = 2048
)

// gather fills p with the n elements from number from on, in row-major order.
func (t *Tensor) gather(p []byte, from, n int64) error {
	size := int64(t.DType.Size())
	run := t.run()
	if run < 0 || n <= run-from%run { // in one piece
		return t.readFull(p, t.place(from)*size)
	}
	first, last := t.span(from, n, run)
	if bytes := (last - first) * size; bytes <= window && bytes/dear <= n/run+1 {
		held := make([]byte, bytes)
		if err := t.readFull(held, first*size); err != nil {
			return err
		}
		for done := int64(0); done < n; {
			k := min(n-done, run-(from+done)%run)
			at := (t.place(from+done) - first) * size
			copy(p[done*size:(done+k)*size], held[at:])
			done += k
		}
		return nil
	}
	for done := int64(0); done < n; {
		k := min(n-done, run-(from+done)%run)
		if err := t.readFull(p[done*size:(done+k)*size], t.place(from+done)*size); err != nil {
			return err
		}
		done += k
	}
	return nil
}

// run is the least number of adjacent elements in memory at a multiple of that number; −1 if all elements are adjacent.
func (t *Tensor) run() int64 {
	if t.Strides == nil {
		return -1
	}
	n := int64(1)
	for i := len(t.Shape) - 1; i >= 0; i-- {
		if t.Shape[i] != 1 && int64(t.Strides[i]) != n {
			return n
		}
		n *= int64(t.Shape[i])
	}
	return -1
}

// place is where the element with a row-major number lies, in elements of the storage from Offset on.
func (t *Tensor) place(number int64) int64 {
	if t.Strides == nil {
		return number
	}
	at := int64(0)
	for i := len(t.Shape) - 1; i >= 0; i-- {
		d := int64(t.Shape[i])
		at += number % d * int64(t.Strides[i])
		number /= d
	}
	return at
}

// span is the part of the storage, in elements, that has the n elements from number from on.
func (t *Tensor) span(from, n, run int64) (first, last int64) {
	first, last = t.place(from), t.place(from)
	for done := int64(0); done < n; {
		k := min(n-done, run-(from+done)%run)
		at := t.place(from + done)
		first, last = min(first, at), max(last, at+k)
		done += k
	}
	return first, last
}
