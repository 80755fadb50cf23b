package container

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

// checksum compares the CRC-32 of a stored member once, when any part of the member is first read. For that the whole member is read, in pieces of
// checkBytes.
type checksum struct {
	once sync.Once
	err  error
}

// checkBytes is how much of a member is read at once to compare its checksum.
const checkBytes = 1 << 20

// damaged is the error of a member with a wrong checksum.
func (m Member) damaged(why error) error {
	return hint.Add(fmt.Errorf("zip member %s is damaged: %w", plain.Quote(m.Name), why),
		"the file changed after it was written: copy it again and compare sha256sum on both sides, or write the dump again")
}

// Intact reads a whole member and compares the checksum. A damaged header is told in this way from a header that a writer got wrong.
func (z *Zip) Intact(m Member) error {
	if m.file.Method == zip.Store {
		if m.sum == nil {
			return nil
		}
		return m.sum.compare(m, z.file)
	}
	r, err := m.unpack()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(r, m.Size+1))
	return err
}

// unpack opens a compressed member. What is no compressed data, or has another checksum than the archive says, is a damaged member.
func (m Member) unpack() (io.ReadCloser, error) {
	r, err := m.file.Open()
	if err != nil {
		return nil, err
	}
	return unpacking{r, m}, nil
}

type unpacking struct {
	io.ReadCloser
	member Member
}

func (u unpacking) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	var corrupt flate.CorruptInputError
	if errors.Is(err, zip.ErrChecksum) || errors.As(err, &corrupt) {
		err = u.member.damaged(err)
	}
	return n, err
}

// compare reports a member whose checksum differs from the archive's. A read error is returned as well.
func (c *checksum) compare(m Member, r io.ReaderAt) error {
	c.once.Do(func() {
		sum := crc32.NewIEEE()
		n, err := io.CopyBuffer(sum, io.NewSectionReader(r, m.at, m.Size), make([]byte, min(checkBytes, max(m.Size, 1))))
		switch {
		case err != nil:
			c.err = err
		case n != m.Size:
			c.err = fmt.Errorf("zip member %s: %w", plain.Quote(m.Name), io.ErrUnexpectedEOF)
		case sum.Sum32() != m.file.CRC32:
			c.err = m.damaged(fmt.Errorf("its bytes have the checksum %08x, but the archive says %08x", sum.Sum32(), m.file.CRC32))
		}
	})
	return c.err
}

// checked is a stored member that is read at any place once its checksum is right.
type checked struct {
	member Member
	file   io.ReaderAt
}

func (c checked) ReadAt(p []byte, off int64) (int, error) {
	if err := c.member.sum.compare(c.member, c.file); err != nil {
		return 0, err
	}
	return io.NewSectionReader(c.file, c.member.at, c.member.Size).ReadAt(p, off)
}

// sums gives the stored members their checksums. An archive with only zeros has no checksums: torch.save leaves them out after
// torch.serialization.set_crc32_options(False).
func (z *Zip) sums() {
	for _, m := range z.Members {
		if m.file.CRC32 != 0 {
			for i := range z.Members {
				z.Members[i].sum = &checksum{}
			}
			return
		}
	}
}
