package httpx

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// TestTalk_Questions_AnsweredOnOneConnection: conns says how many connections the daemon got by then.
func TestTalk_Questions_AnsweredOnOneConnection(t *testing.T) {
	t.Parallel()
	type text struct{ Text string }
	path := filepath.Join(t.TempDir(), "routd.http.sock")
	var conns, posts atomic.Int32
	var unusable atomic.Bool
	var logged strings.Builder
	release := make(chan struct{})
	answer := func(_ context.Context, q *text) (*text, error) {
		switch q.Text {
		case "refuse":
			return nil, apierr.New(apierr.Conflict, "taken")
		case "bug":
			return nil, errors.New("details")
		case "panic":
			panic("details")
		case "slow":
			<-release
		}
		return &text{q.Text + "!"}, nil
	}
	serve := func(talks bool) *Server {
		log := slog.New(slog.NewTextHandler(&logged, nil))
		router := NewRouter(log, nil)
		if talks {
			router.Get("/v1/x", ServeTalk(time.Minute, answer))
		}
		router.Post("/v1/x", NewLimit(time.Minute).Wrap(func(r *http.Request) (*Answer, error) {
			posts.Add(1)
			q, _ := Decode[text](r)
			a, err := answer(r.Context(), &q)
			return &Answer{http.StatusOK, a}, err
		}))
		server, err := ListenLocal(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if unusable.Load() {
				Error(w, apierr.New(apierr.Unavailable, "starting"))
				return
			}
			router.ServeHTTP(w, r)
		}), log)
		if err != nil {
			t.Fatal(err)
		}
		server.http.ConnState = func(c net.Conn, state http.ConnState) {
			if stateChanged(c, state); state == http.StateNew {
				conns.Add(1)
			}
		}
		go func() { _ = server.Serve() }()
		return server
	}
	client := NewLocalClient(path)
	defer client.HTTP.CloseIdleConnections()
	talk := client.Talk("/v1/x")
	defer talk.close()
	var server *Server
	for _, tt := range []struct {
		ask, gets, fails string
		kind             apierr.Kind
		conns, posts     int32
	}{
		{"down", "", "does not answer", apierr.Unavailable, 0, 0},
		{"start", "", "", "", 0, 0},
		{"a", "a!", "", "", 1, 0},
		{"refuse", "", "taken", apierr.Conflict, 1, 0},
		{"bug", "", "internal error", apierr.Internal, 1, 0},
		{"panic", "", "internal error", apierr.Internal, 1, 0},
		{strings.Repeat("b", 1<<20), strings.Repeat("b", 1<<20) + "!", "", "", 1, 0},
		{"slow", "", context.DeadlineExceeded.Error(), apierr.Unavailable, 1, 0},
		{"c", "c!", "", "", 2, 0},
		{"another type", "", "cannot be decoded", apierr.BadRequest, 2, 0},
		{"d", "d!", "", "", 3, 0},
		{"starting", "", "", "", 3, 0},
		{"e", "", "starting", apierr.Unavailable, 5, 0},
		{"started", "", "", "", 5, 0},
		{"f", "f!", "", "", 6, 0},
		{"older version", "", "", "", 6, 0},
		{"g", "g!", "", "", 8, 1}, // one connection is refused
		{"h", "h!", "", "", 8, 2},
	} {
		switch tt.ask {
		case "start":
			server = serve(true)
			continue
		case "starting":
			unusable.Store(true)
			talk.conn.Close()
			continue
		case "started":
			unusable.Store(false)
			continue
		case "older version":
			_ = server.Close(t.Context())
			talk.conn.Close() // as the end of the process does
			server = serve(false)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if tt.ask == "slow" {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
		}
		var got text
		question := any(text{tt.ask})
		if tt.ask == "another type" {
			question = struct{ Text int }{7}
		}
		err := talk.Ask(ctx, question, &got)
		cancel()
		if apierr.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.fails) || got.Text != tt.gets {
			t.Errorf("%.10s: %.10q, %v", tt.ask, got.Text, err)
		}
		if conns.Load() != tt.conns || posts.Load() != tt.posts {
			t.Errorf("%.10s: %d connections, %d posts, want %d and %d", tt.ask, conns.Load(), posts.Load(), tt.conns, tt.posts)
		}
		if tt.ask == "slow" {
			close(release)
		}
	}
	if err := server.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(logged.String(), "request failed"); n != 2 || !strings.Contains(logged.String(), "panic: details") {
		t.Errorf("logged %d: %s", n, logged.String())
	}
}

// A talk is for callers on the socket: they are proven once, and a question carries no signature.
func TestTalk_FromElsewhere_Refused(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/x", nil)
	r.Header.Set("Upgrade", talkProtocol)
	ServeTalk(time.Minute, func(context.Context, *int) (*int, error) { return nil, errors.New("asked") })(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "ask by POST") {
		t.Errorf("%d %s", w.Code, w.Body)
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
