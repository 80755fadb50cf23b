// Command pack puts files into an archive whose bytes depend on nothing but the files' bytes, their names and the date given: a release
// that two people build is the same.
//
//	go run ./internal/pack -date 1750000000 tracediff.tar.gz FOLDER
//
// The archive has the files below FOLDER, in the order of their names, under the name of FOLDER: the last part of its path. Its kind
// is told by its name: .tar.gz or .zip. Files that may be run stay so; owners, times and other modes are left out.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	date := flag.Int64("date", 0, "the date of every file, in `SECONDS` since 1970")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: pack -date SECONDS ARCHIVE FOLDER")
		os.Exit(2)
	}
	if err := pack(flag.Arg(0), flag.Arg(1), time.Unix(*date, 0).UTC()); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// archive takes files in the order in which they are to be.
type archive interface {
	// add begins a file, which is then written to the writer.
	add(name string, size int64, mode fs.FileMode) (io.Writer, error)
	Close() error
}

// pack writes the archive of a folder.
func pack(name, folder string, date time.Time) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var a archive
	switch {
	case strings.HasSuffix(name, ".tar.gz"):
		z, err := gzip.NewWriterLevel(f, gzip.BestCompression) // its header has neither a name nor a date
		if err != nil {
			return err
		}
		a = &tarArchive{tar.NewWriter(z), z, date}
	case strings.HasSuffix(name, ".zip"):
		a = &zipArchive{zip.NewWriter(f), date}
	default:
		return fmt.Errorf("%s: want .tar.gz or .zip", name)
	}
	files := os.DirFS(folder)
	err = fs.WalkDir(files, ".", func(at string, d fs.DirEntry, err error) error { // in the order of names
		if err != nil || d.IsDir() {
			return err
		}
		return addFile(a, files, at, path.Join(filepath.Base(folder), at))
	})
	return errors.Join(err, a.Close())
}

func addFile(a archive, files fs.FS, from, name string) error {
	f, err := files.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", from)
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	w, err := a.add(name, info.Size(), mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

type tarArchive struct {
	*tar.Writer
	gzip *gzip.Writer
	date time.Time
}

func (a *tarArchive) add(name string, size int64, mode fs.FileMode) (io.Writer, error) {
	return a, a.WriteHeader(&tar.Header{Name: name, Size: size, Mode: int64(mode), ModTime: a.date, Format: tar.FormatUSTAR})
}

func (a *tarArchive) Close() error { return errors.Join(a.Writer.Close(), a.gzip.Close()) }

type zipArchive struct {
	*zip.Writer
	date time.Time
}

func (a *zipArchive) add(name string, _ int64, mode fs.FileMode) (io.Writer, error) {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: a.date}
	h.SetMode(mode)
	return a.CreateHeader(h)
}
