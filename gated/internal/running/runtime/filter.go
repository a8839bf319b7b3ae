package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// vsockFilter is a program for bubblewrap's --seccomp. It forbids sockets between virtual machines, which reach the
// hypervisor and belong to no network namespace, and what else makes sockets of any kind: io_uring, and system calls
// of other architectures than the machine's.
func vsockFilter() (string, error) {
	arch := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[goruntime.GOARCH]
	const (
		load, and     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		equal, ends   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		x32           = 0x40000000 // the bit of amd64's calls with short pointers
		number, of    = 0, 4       // where struct seccomp_data has the call and its architecture
		family        = 16         // and its first argument
		allow, forbid = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	)
	var program bytes.Buffer
	err := binary.Write(&program, binary.NativeEndian, []unix.SockFilter{
		{Code: load, K: of},
		{Code: equal, K: arch, Jf: 7},
		{Code: load, K: number},
		{Code: and, K: ^uint32(x32)},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 4},
		{Code: equal, K: unix.SYS_SOCKET, Jf: 2},
		{Code: load, K: family},
		{Code: equal, K: unix.AF_VSOCK, Jt: 1},
		{Code: ends, K: allow},
		{Code: ends, K: forbid},
	})
	if arch == 0 {
		err = errors.New("a network of the kind ask is for amd64 and arm64")
	}
	return program.String(), err
}
