package checkpoint

import (
	"io/fs"
	"syscall"
)

// system adds the fields that only Linux has.
func (id *identity) system(info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Status, id.Inode, id.Device = st.Ctim.Nano(), st.Ino, uint64(st.Dev)
	}
}
