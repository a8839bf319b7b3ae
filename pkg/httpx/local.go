package httpx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"arizuko/pkg/wake"

	"golang.org/x/sys/unix"
)

// localBase is the URL of requests on a socket: a host that every daemon answers.
const localBase = "http://localhost"

// ListenLocal is Listen on a Unix socket. A caller that can connect to it is taken for one that has the shared secret,
// see HasSecret: it is accessible to the owner of its folder alone, and so is the folder from then on. The socket
// replaces one that another process left; the caller makes sure that this process has ended.
func ListenLocal(path string, handler http.Handler, log *slog.Logger) (*Server, error) {
	listener, err := listenLocal(path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	s := NewServer(listener, handler, log)
	s.name = path
	next := s.http.Handler
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, proven(r)) })
	return s, nil
}

func listenLocal(path string) (net.Listener, error) {
	folder, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	// it is another user's, who trusts it
	if err := os.Chmod(below(folder, "."), 0o700); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, err
	}
	name := below(folder, filepath.Base(path))
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := (&net.ListenConfig{Control: wake.OwnerOnly}).Listen(context.Background(), "unix", name)
	if err != nil {
		return nil, err
	}
	if l, ok := listener.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false) // the next process may have replaced it already
	}
	if err := giveAway(folder, filepath.Base(path)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// giveAway makes the socket of a process of root that of the folder's owner, whose programs are to call it. The owner
// may have put something else in its place meanwhile, which stays as it is.
func giveAway(folder *os.File, name string) error {
	owner, err := ownerOf(folder)
	if err != nil || os.Geteuid() != 0 || owner.Uid == 0 {
		return err
	}
	fd, err := unix.Openat(int(folder.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	socket := os.NewFile(uintptr(fd), name)
	defer socket.Close()
	info, err := ownerOf(socket)
	if err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFSOCK || info.Nlink != 1 {
		return fmt.Errorf("%s is not the socket that was just made", name)
	}
	return unix.Fchownat(fd, "", int(owner.Uid), int(owner.Gid), unix.AT_EMPTY_PATH)
}

// NewLocalClient returns a client of the daemon that listens on a socket, with a timeout of 10 s per call. It connects
// only where no other user than this one, root and the owner of the data folder could have put the socket.
func NewLocalClient(path string) *Client {
	return &Client{Base: localBase, HTTP: newHTTP(dialLocal(path)), socket: path, peer: path}
}

func dialLocal(path string) Dial {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		folder, err := openFolder(path)
		if err != nil {
			return nil, err
		}
		defer folder.Close()
		dialer := net.Dialer{Timeout: dialTimeout}
		conn, err := dialer.DialContext(ctx, "unix", below(folder, filepath.Base(path)))
		if failed := new(net.OpError); errors.As(err, &failed) {
			failed.Addr = &net.UnixAddr{Name: path, Net: "unix"}
		}
		return conn, err
	}
}

// openFolder opens the folder of a socket, and checks that other users can put nothing into it. It returns an error
// that is a *net.OpError if there is none, as for a daemon that does not run.
func openFolder(path string) (*os.File, error) {
	folder := filepath.Dir(path)
	flags := unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	if os.Geteuid() == 0 { // for root a link may be a trap
		flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Open(folder, flags, 0)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: path, Net: "unix"}, Err: err}
	}
	f := os.NewFile(uintptr(fd), folder)
	if err := trusted(f, folder); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// trusted returns an error if other users could have put a socket into a folder.
func trusted(f *os.File, folder string) error {
	info, err := ownerOf(f)
	if err != nil {
		return err
	}
	if info.Mode&0o022 != 0 {
		return fmt.Errorf("other users may write to %s: chmod 700 %s", folder, folder)
	}
	me, data := uint32(os.Geteuid()), syscall.Stat_t{}
	if info.Uid == me || info.Uid == 0 {
		return nil
	}
	if err := syscall.Stat(filepath.Dir(folder), &data); err != nil || data.Uid != info.Uid {
		return fmt.Errorf("%s belongs to user %d, who is neither this user nor the owner of the data folder", folder,
			info.Uid)
	}
	return nil
}

func ownerOf(f *os.File) (*unix.Stat_t, error) {
	var info unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &info); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return &info, nil
}

// below names a file in an opened folder: the kernel takes at most 107 bytes, and the checked folder is the one used.
func below(folder *os.File, name string) string {
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(folder.Fd())), name)
}
