package snapshots

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// coder writes values one after another, or reads them: one description of a value serves both.
type coder struct {
	data    []byte // what is written, or left to read
	source  string // all that is read; texts are parts of it
	reading bool
	invalid bool
}

// newCoder writes after so many bytes, with room for what most files have.
func newCoder(size int) *coder { return &coder{data: make([]byte, size, 1024)} }

func (c *coder) number(n *int64) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, *n)
		return
	}
	v, size := binary.Varint(c.data)
	c.invalid = c.invalid || size <= 0
	*n, c.data = v, c.data[max(size, 0):]
}

// length is a number of values, each of which takes a byte at least.
func (c *coder) length(n int) int {
	size := int64(n)
	c.number(&size)
	if c.reading && (size < 0 || size > int64(len(c.data))) {
		c.invalid, size = true, 0
	}
	return int(size)
}

func (c *coder) text(s *string) {
	size := c.length(len(*s))
	if !c.reading {
		c.data = append(c.data, *s...)
		return
	}
	at := len(c.source) - len(c.data)
	*s, c.data = c.source[at:at+size], c.data[size:]
}

func list[T any](c *coder, values *[]T, code func(*T)) {
	size := c.length(len(*values))
	if c.reading {
		*values = make([]T, size)
	}
	for i := range *values {
		code(&(*values)[i])
	}
}

func (c *coder) entry(e *entry) {
	for _, n := range [...]*int64{&e.kind, &e.mode, &e.uid, &e.gid, &e.size, &e.mtime, &e.ctime, &e.inode, &e.links} {
		c.number(n)
	}
	c.text(&e.content)
	c.text(&e.why)
}

func (c *coder) item(i *item) {
	c.text(&i.path)
	c.entry(&i.entry)
}

func (c *coder) change(x *change) {
	c.text(&x.path)
	c.entry(&x.before)
	c.entry(&x.after)
	c.text(&x.why)
}

// header begins each file, and a checksum follows. Files of other versions count as damaged.
const (
	header = "arizuko undo 1\n"
	body   = len(header) + crc32.Size
)

// errDamaged is an error of a file that is not as it was written.
var errDamaged = errors.New("damaged")

func checksum(data []byte) []byte {
	sum := crc32.Checksum(data[body:], crc32.MakeTable(crc32.Castagnoli))
	return binary.LittleEndian.AppendUint32([]byte(header), sum)
}

// save writes a file in one step.
func save(dir *os.Root, name string, sync bool, code func(*coder)) error {
	c := newCoder(body)
	code(c)
	return write(dir, name, sync, c)
}

// write writes a file in one step, whose content follows the room for its header.
func write(dir *os.Root, name string, sync bool, c *coder) error {
	copy(c.data, checksum(c.data))
	f, err := dir.OpenFile(name+"+", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(c.data); err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(name+"+", name)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(name+"+"))
	}
	if sync {
		return withFolder(dir, ".", (*os.File).Sync)
	}
	return nil
}

// load reads a file that save has written. It returns false if there is none.
func load(dir *os.Root, name string, code func(*coder)) (bool, error) {
	data, err := dir.ReadFile(name)
	if err != nil {
		return false, ignoreMissing(err)
	}
	if len(data) < body || string(checksum(data)) != string(data[:body]) {
		return false, fmt.Errorf("%s is %w", name, errDamaged)
	}
	c := &coder{data: data[body:], source: string(data[body:]), reading: true}
	if code(c); c.invalid {
		return false, fmt.Errorf("%s is %w", name, errDamaged)
	}
	return true, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// withFolder opens a folder and calls do with it.
func withFolder(root *os.Root, path string, do func(*os.File) error) error {
	f, err := root.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}
