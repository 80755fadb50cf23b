package container

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

const (
	// maxDirectory bounds the directory of an archive, in bytes: some 60,000 members with names of ordinary length.
	maxDirectory = 8 << 20
	// bombRatio is how many times its size a compressed member of numbers may grow. Activations grow less than three times, a long
	// run of zeros a thousand times.
	bombRatio = 200
	// bombSize is what compressed members may unpack to whatever the ratio, in bytes.
	bombSize = 256 << 20
)

// Zip is an archive with random access to its members: stored members in place, compressed members through a temporary file.
type Zip struct {
	Members []Member
	file    io.ReaderAt
	spool   Spool
}

// Member is one file of an archive.
type Member struct {
	Name string
	Size int64
	file *zip.File
	at   int64     // where its bytes lie, compressed or not
	sum  *checksum // nil where the archive has none
}

// OpenZip reads the directory of an archive and checks it: members have one name each, lie apart, and unpack to a size that
// numbers can have.
func OpenZip(r io.ReaderAt, size int64) (*Zip, error) {
	limited := &limitedReader{r: r, left: maxDirectory}
	dir, err := zip.NewReader(limited, size)
	if err != nil {
		if limited.left < 0 {
			return nil, fmt.Errorf("the directory of the zip archive is larger than %d MiB", maxDirectory>>20)
		}
		err = fmt.Errorf("zip archive: %w", err)
		if errors.Is(err, zip.ErrFormat) { // its directory is its end
			err = hint.Add(err, "the file is cut short, or damaged: did the run that wrote it end, and is the copy complete?")
		}
		return nil, err
	}
	limited.through = true
	z := &Zip{file: r}
	seen := map[string]bool{}
	for _, f := range dir.File {
		if strings.HasSuffix(f.Name, "/") && f.UncompressedSize64 == 0 {
			continue
		}
		if seen[f.Name] {
			return nil, fmt.Errorf("the zip archive has %s twice", plain.Quote(f.Name))
		}
		seen[f.Name] = true
		m := Member{Name: f.Name, Size: int64(f.UncompressedSize64), file: f}
		if err := m.check(size); err != nil {
			return nil, fmt.Errorf("zip member %s: %w", plain.Quote(f.Name), err)
		}
		z.Members = append(z.Members, m)
	}
	z.sums()
	return z, z.check()
}

// check returns an error for a member that the archive cannot have, and finds the offset of the member's bytes.
func (m *Member) check(size int64) error {
	f := m.file
	switch {
	case f.Flags&1 != 0:
		return errors.New("encrypted")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Errorf("compressed by method %d, which is not read", f.Method)
	case f.Method == zip.Store && f.CompressedSize64 != f.UncompressedSize64:
		return fmt.Errorf("stored as it is, with two sizes: %d and %d", f.CompressedSize64, f.UncompressedSize64)
	case f.UncompressedSize64 > 1<<60 || f.CompressedSize64 > uint64(size):
		return fmt.Errorf("a size of %d bytes in an archive of %d", f.CompressedSize64, size)
	}
	at, err := f.DataOffset()
	if err != nil {
		return err
	}
	if m.at = at; at < 0 || at > size || uint64(size-at) < f.CompressedSize64 {
		return fmt.Errorf("%d bytes from byte %d on, in an archive of %d", f.CompressedSize64, at, size)
	}
	return nil
}

// check reports members that overlap, or unpack to more than numbers do.
func (z *Zip) check() error {
	order := slices.Clone(z.Members)
	slices.SortFunc(order, func(a, b Member) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return int(min(max(a.end()-b.end(), -1), 1))
	})
	var packed, unpacked uint64
	for i, m := range order {
		if i > 0 && m.at < order[i-1].end() {
			return fmt.Errorf("zip members %s and %s overlap", plain.Quote(order[i-1].Name), plain.Quote(m.Name))
		}
		if m.file.Method == zip.Deflate {
			packed += m.file.CompressedSize64
			unpacked += m.file.UncompressedSize64
		}
		if unpacked > bombSize && unpacked/bombRatio > packed {
			return hint.Add(fmt.Errorf("a zip bomb: members of %d bytes claim to unpack to %d", packed, unpacked),
				"write large arrays of zeros without compression: numpy.savez")
		}
	}
	return nil
}

func (m Member) end() int64 { return m.at + int64(m.file.CompressedSize64) }

// Start reads the first bytes of a member, at most n.
func (z *Zip) Start(m Member, n int) ([]byte, error) {
	p := make([]byte, min(int64(n), m.Size))
	if m.file.Method == zip.Store {
		_, err := io.ReadFull(io.NewSectionReader(z.file, m.at, m.Size), p)
		return p, err
	}
	r, err := m.unpack()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	_, err = io.ReadFull(r, p)
	return p, err
}

// Data gives the bytes of a member at any place. When it is first read its checksum is compared, and a compressed one is unpacked.
func (z *Zip) Data(m Member) io.ReaderAt {
	switch {
	case m.file.Method == zip.Store && m.sum == nil:
		return io.NewSectionReader(z.file, m.at, m.Size)
	case m.file.Method == zip.Store:
		return checked{m, z.file}
	}
	return z.spool.Add(m.Size, m.unpack)
}

// Spool is where the archive's members are unpacked, for what else has to be.
func (z *Zip) Spool() *Spool { return &z.spool }

// Close removes what was unpacked.
func (z *Zip) Close() error { return z.spool.Close() }

// limitedReader fails once more than a number of bytes was read, until it lets everything through.
type limitedReader struct {
	r       io.ReaderAt
	left    int64
	through bool
}

func (l *limitedReader) ReadAt(p []byte, off int64) (int, error) {
	if l.through {
		return l.r.ReadAt(p, off)
	}
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, errors.New("too much to read")
	}
	return l.r.ReadAt(p, off)
}
