package httpx

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"arizuko/pkg/apierr"
)

// local serves a handler on a socket in a folder, until the test ends.
func local(t *testing.T, path string, handler http.Handler) {
	t.Helper()
	server, err := ListenLocal(path, handler, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(t.Context()), <-served); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Error(err)
		}
	})
}

func TestLocal_Socket_NeedsNoSecretAndShowsNone(t *testing.T) {
	t.Parallel()
	// Longer than the address of a socket may be.
	folder := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "routd.http.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil { // left by another process
		t.Fatal(err)
	}
	local(t, path, Bearer("s3cret")(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		JSON(w, http.StatusOK, r.Host+r.URL.Path+r.Header.Get("Authorization"))
	})))
	client := NewLocalClient(path)
	defer client.HTTP.CloseIdleConnections()
	for range 3 {
		var said string
		if err := client.Do(t.Context(), http.MethodGet, "/v1/x", nil, &said); err != nil || said != "localhost/v1/x" {
			t.Errorf("%q, %v", said, err)
		}
	}
	for name, want := range map[string]os.FileMode{folder: 0o700, path: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

// TestLocal_SocketOfRoot_IsTheOwners: the programs of the data folder's owner call a gated of root.
func TestLocal_SocketOfRoot_IsTheOwners(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes sockets for other users")
	}
	folder := filepath.Join(t.TempDir(), "run")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Chown(folder, 4711, 4711), os.Chown(filepath.Dir(folder), 4711, 4711)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "gated.http.sock")
	local(t, path, http.NotFoundHandler())
	var info unix.Stat_t
	if err := unix.Lstat(path, &info); err != nil || info.Uid != 4711 || info.Mode&0o777 != 0o600 {
		t.Errorf("user %d, mode %o, %v", info.Uid, info.Mode, err)
	}
	secret := filepath.Join(folder, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil { // of root
		t.Fatal(err)
	}
	opened, err := openFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if err := giveAway(opened, "secret"); err == nil {
		t.Error("what is no socket is given away")
	}
	if err := unix.Lstat(secret, &info); err != nil || info.Uid != 0 {
		t.Errorf("user %d, %v", info.Uid, err)
	}
}

// TestLocal_FolderOfOthers_IsNotTrusted: a user who can put a socket there could pose as the daemon.
func TestLocal_FolderOfOthers_IsNotTrusted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(folder string) error
		says    string
		root    bool
	}{
		"others may write": {func(f string) error { return os.Chmod(f, 0o777) }, "other users may write", false},
		"group may write":  {func(f string) error { return os.Chmod(f, 0o770) }, "other users may write", false},
		"no folder":        {os.Remove, "no such file", false},
		"no socket":        {func(string) error { return nil }, "no such file", false},
		"of a third user":  {func(f string) error { return os.Chown(f, 4711, 4711) }, "belongs to user 4711", true},
		"a link, for root": {func(f string) error { return errors.Join(os.Remove(f), os.Symlink("/tmp", f)) }, "not a directory", true},
		"of the data folder's": {func(f string) error {
			return errors.Join(os.Chown(f, 4711, 4711), os.Chown(filepath.Dir(f), 4711, 4711))
		}, "no such file", true},
		"a file in its place":   {func(f string) error { return errors.Join(os.Remove(f), os.WriteFile(f, nil, 0o600)) }, "not a directory", false},
		"no socket, but a file": {func(f string) error { return os.WriteFile(filepath.Join(f, "x.http.sock"), nil, 0o600) }, "refused", false},
	} {
		if tt.root && os.Geteuid() != 0 {
			continue
		}
		folder := filepath.Join(t.TempDir(), "run")
		if err := errors.Join(os.Mkdir(folder, 0o700), tt.prepare(folder)); err != nil {
			t.Fatal(name, err)
		}
		client := NewLocalClient(filepath.Join(folder, "x.http.sock"))
		err := client.Do(t.Context(), http.MethodGet, "/", nil, nil)
		if apierr.KindOf(err) != apierr.Unavailable || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
