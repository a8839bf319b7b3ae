package httpx

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/apierr"
)

const maxTestConns = 4

// ample is a limit of time that does not pass in a test.
const ample = 30 * time.Second

// serve starts a server with 4 connections, and limits of time for bodies and answers.
func serve(t *testing.T, body, answer time.Duration, handler http.HandlerFunc) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(listener, handler, slog.New(slog.DiscardHandler), limits{
		body: body, answer: answer, conns: func() int { return maxTestConns },
	})
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		_ = s.Close(t.Context()) // t's context is done: it does not wait for requests
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

// open sends text on a new connection.
func (s *Server) open(t *testing.T, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(ample)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// settle waits until all open connections wait for their clients: a handler ends after its answer.
func (s *Server) settle(t *testing.T) {
	t.Helper()
	l := s.listener.(*conns)
	settled := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, since := range l.open {
			if since.IsZero() {
				return false
			}
		}
		return true
	}
	for end := time.Now().Add(ample); !settled(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("connections are still in use")
		}
	}
}

// answer reads an answer with its body.
func answer(t *testing.T, c net.Conn) (res *http.Response, body string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

const (
	getRequest = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	slowPost   = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n\"some"
)

// readAll is a handler that answers with the size of the body.
func readAll(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		Error(w, err)
		return
	}
	fmt.Fprint(w, len(body))
}

func TestServer_ConnectionsThatWait_DoNotStarveOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		text   string
		begins bool // a handler
	}{
		"nothing sent":   {"", false},
		"half a header":  {"GET / HTTP/1.1\r\nHost:", false},
		"half a body":    {slowPost, true},
		"idle":           {getRequest, true},
		"unread chunked": {"POST /unread HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			entered := make(chan struct{}, 5*maxTestConns+1)
			s := serve(t, ample, ample, func(w http.ResponseWriter, r *http.Request) {
				entered <- struct{}{}
				readAll(w, r)
			})
			for range 5 * maxTestConns {
				s.open(t, tt.text)
				if tt.begins {
					<-entered // one that is in use may not be closed
					s.settle(t)
				}
			}
			if _, body := answer(t, s.open(t, getRequest)); body != "0" {
				t.Errorf("got %q", body)
			}
		})
	}
}

func TestServer_RequestsInWork_NotClosedForOthers(t *testing.T) {
	entered, release := make(chan struct{}, maxTestConns), make(chan struct{})
	s := serve(t, 100*time.Millisecond, ample, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			readAll(w, r)
			entered <- struct{}{}
			<-release
		}
	})
	var posts []net.Conn
	for range maxTestConns {
		posts = append(posts, s.open(t, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nsome"))
		<-entered
	}
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("one too many got %d bytes", n)
	}
	time.AfterFunc(200*time.Millisecond, func() { close(release) }) // after the deadline for bodies
	for _, post := range posts {
		if _, body := answer(t, post); body != "4" {
			t.Errorf("got %q", body)
		}
	}
	s.settle(t)
	if res, _ := answer(t, s.open(t, getRequest)); res.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d", res.StatusCode)
	}
}

func TestServer_SlowBody_Refused(t *testing.T) {
	s := serve(t, 100*time.Millisecond, ample, func(w http.ResponseWriter, r *http.Request) {
		_, err := Decode[string](r)
		Error(w, err)
	})
	for _, text := range []string{slowPost, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n\"a\""} {
		res, body := answer(t, s.open(t, text))
		if res.StatusCode != 400 || !res.Close || !strings.Contains(body, "not received within 100ms") {
			t.Errorf("%d, close %t: %s", res.StatusCode, res.Close, body)
		}
	}
}

func TestServer_RefusedBeforeBody_AnsweredAtOnceAndClosed(t *testing.T) {
	s := serve(t, ample, ample, Bearer("s3cret")(http.HandlerFunc(readAll)).ServeHTTP)
	c := s.open(t, slowPost)
	res, _ := answer(t, c)
	if res.StatusCode != 401 || !res.Close {
		t.Errorf("%d, close %t", res.StatusCode, res.Close)
	}
	if _, err := io.WriteString(c, strings.Repeat("x", 1000-len(`"some`))); err != nil {
		t.Errorf("the rest: %v", err)
	}
	if n, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("then %d bytes, %v", n, err)
	}
}

func TestServer_BodyRead_ConnectionIsKept(t *testing.T) {
	s := serve(t, ample, ample, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		Error(w, apierr.New(apierr.Conflict, "taken"))
	})
	c := s.open(t, "")
	for range 3 {
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nsome"); err != nil {
			t.Fatal(err)
		}
		if res, body := answer(t, c); res.StatusCode != 409 || res.Close {
			t.Errorf("%d, close %t: %s", res.StatusCode, res.Close, body)
		}
	}
}

// A handler may work for longer than a body may take.
func TestServer_BodyDeadline_DoesNotEndHandlers(t *testing.T) {
	s := serve(t, 100*time.Millisecond, ample, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
			t.Error("the request has ended")
		case <-time.After(200 * time.Millisecond):
		}
	})
	for _, text := range []string{getRequest, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nsome"} {
		answer(t, s.open(t, text))
	}
}

func TestServer_AnswerUnread_CutOff(t *testing.T) {
	failed := make(chan error)
	s := serve(t, ample, time.Second, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				failed <- err
				return
			}
		}
	})
	s.open(t, getRequest)
	select {
	case <-failed:
	case <-time.After(ample):
		t.Error("the server still writes")
	}
}

func TestMaxConns_FollowsFileLimit(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
	for files, want := range map[uint64]int{260: 65, 40: minConns, min(before.Max, 1<<20): maxConns} {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
		if got := MaxConns(); got != want {
			t.Errorf("%d files: %d connections, want %d", files, got, want)
		}
	}
}
