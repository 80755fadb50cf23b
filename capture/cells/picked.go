package cells

import (
	"io"
)

// picked reads a tensor [outer, cells, inner] as [outer, keys, inner]: only the cells of the keys, from the oldest key to the newest.
type picked struct {
	table *table
	outer int
	inner int // bytes
	data  io.ReaderAt
}

// ReadAt reads bytes of the keys, as [io.ReaderAt] does.
func (p *picked) ReadAt(to []byte, off int64) (int, error) {
	slots, err := p.table.slots()
	if err != nil {
		return 0, err
	}
	row := int64(p.inner) * int64(len(slots))
	end := error(nil)
	if rest := row*int64(p.outer) - off; off < 0 || int64(len(to)) > rest {
		to, end = to[:max(rest, 0)], io.EOF
	}
	done := 0
	for done < len(to) {
		at := off + int64(done)
		block, in := at/row, at%row
		key, skip := int(in/int64(p.inner)), in%int64(p.inner)
		run := 1 // keys whose cells follow each other
		for key+run < len(slots) && slots[key+run] == slots[key]+run {
			run++
		}
		n := min(int64(len(to)-done), int64(run)*int64(p.inner)-skip)
		from := (block*int64(p.table.cells)+int64(slots[key]))*int64(p.inner) + skip
		got, err := p.data.ReadAt(to[done:done+int(n)], from)
		done += got
		if int64(got) < n {
			return done, err
		}
	}
	return done, end
}
