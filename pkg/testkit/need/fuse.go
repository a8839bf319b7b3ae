package need

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// Requests of FUSE that the empty file system answers, and sizes, in bytes, of its structures.
const (
	fuseLookup  = 1
	fuseGetattr = 3
	fuseStatfs  = 17
	fuseInit    = 26

	fuseIn      = 40 // the header of a request
	fuseOut     = 16 // and of an answer
	fuseMaxRead = 1 << 17
)

// FUSE mounts an empty file system of FUSE until the test ends, and returns its folder. Nothing can be made in it. It
// skips the test as Root does.
func FUSE(t testing.TB) string {
	t.Helper()
	Root(t)
	device, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open /dev/fuse: %v: in a container, run this test with --privileged", err)
	}
	folder := t.TempDir()
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)
	if err := syscall.Mount("none", folder, "fuse", 0, options); err != nil {
		_ = syscall.Close(device)
		t.Fatalf("mount a file system of FUSE: %v: in a container, run this test with --privileged", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serveFUSE(device)
	}()
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
		<-ended
		_ = syscall.Close(device)
	})
	return folder
}

// serveFUSE answers until the file system is unmounted.
func serveFUSE(device int) {
	request := make([]byte, fuseMaxRead)
	for {
		n, err := syscall.Read(device, request)
		switch {
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.ENOENT): // a request that was taken back
			continue
		case err != nil || n < fuseIn:
			return
		}
		body, no := answerFUSE(binary.NativeEndian.Uint32(request[4:]))
		answer := make([]byte, fuseOut, fuseOut+len(body))
		binary.NativeEndian.PutUint32(answer, uint32(fuseOut+len(body)))
		binary.NativeEndian.PutUint32(answer[4:], uint32(-int32(no)))
		copy(answer[8:], request[8:16])                       // its number
		_, _ = syscall.Write(device, append(answer, body...)) // who asked may have gone
	}
}

// answerFUSE is the body of an answer, or the error: the root is a folder, and nothing is in it.
func answerFUSE(opcode uint32) (body []byte, no syscall.Errno) {
	put := func(at int, v uint32) { binary.NativeEndian.PutUint32(body[at:], v) }
	switch opcode {
	case fuseInit:
		body = make([]byte, 24)
		put(0, 7)     // version
		put(4, 19)    // and minor one, with this length of the answer
		put(20, 4096) // the longest write
	case fuseGetattr:
		body = make([]byte, 16+88)
		put(0, 1)           // seconds for which this is valid
		put(16, 1)          // inode
		put(16+60, 0o40700) // mode: a folder
		put(16+64, 2)       // links
		put(16+80, 4096)    // size of a block
	case fuseStatfs:
		body = make([]byte, 80)
		for _, at := range []int{0, 8, 16, 24, 32} { // blocks, free ones, files
			put(at, 1<<20)
		}
		put(40, 4096) // size of a block
		put(44, 255)  // the longest name
		put(48, 4096) // size of a fragment
	case fuseLookup:
		return nil, syscall.ENOENT
	default:
		return nil, syscall.ENOSYS
	}
	return body, 0
}
