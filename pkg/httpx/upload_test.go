package httpx

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// uploadServer answers with the size of each body, or with its error.
func uploadServer(t *testing.T, limit int64, stall time.Duration) (addr string) {
	t.Helper()
	router := NewRouter(slog.New(slog.DiscardHandler), nil)
	router.Post("/", func(w http.ResponseWriter, r *http.Request) {
		Upload(w, r, limit)
		n, err := io.Copy(io.Discard, r.Body)
		Drain(r)
		if err != nil {
			Error(w, decodeError(err))
			return
		}
		fmt.Fprint(w, n)
	})
	s, err := listen("127.0.0.1:0", router, slog.New(slog.DiscardHandler), limits{body: stall, answer: time.Minute, conns: MaxConns})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		if err := s.Close(t.Context()); err != nil {
			s.http.Close()
		}
		<-done
	})
	return s.Addr()
}

// begin sends the beginning of a request with a body of a length.
func begin(t *testing.T, addr string, length int64) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(ample))
	return c
}

func readAnswer(t *testing.T, c net.Conn) (status int, body string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// A body that takes four times as long as others may, and is larger, passes while it keeps coming.
func TestUpload_SlowAndSteady_Passes(t *testing.T) {
	t.Parallel()
	const stall, pause, piece, pieces = 3 * time.Second, 250 * time.Millisecond, 200_000, 16 // longer in all than a stall
	c := begin(t, uploadServer(t, 10<<20, stall), pieces*piece)
	for range pieces {
		if _, err := io.WriteString(c, strings.Repeat("x", piece)); err != nil {
			t.Fatal(err)
		}
		<-time.After(pause)
	}
	if status, body := readAnswer(t, c); status != 200 || body != fmt.Sprint(pieces*piece) {
		t.Errorf("%d %s", status, body)
	}
}

func TestUpload_Stalled_Ends(t *testing.T) {
	t.Parallel()
	c := begin(t, uploadServer(t, 10<<20, 100*time.Millisecond), 1<<20)
	if _, err := io.WriteString(c, strings.Repeat("x", 500_000)); err != nil {
		t.Fatal(err)
	}
	if status, body := readAnswer(t, c); status != 400 || !strings.Contains(body, "nothing received for 100ms") {
		t.Errorf("%d %s", status, body)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is kept")
	}
}

// A client that sends a byte now and then holds no connection for long.
func TestUpload_Trickling_Ends(t *testing.T) {
	t.Parallel()
	c := begin(t, uploadServer(t, 10<<20, 100*time.Millisecond), 1<<20)
	go func() {
		for { // until the server closes it
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
			<-time.After(20 * time.Millisecond)
		}
	}()
	if status, body := readAnswer(t, c); status != 400 {
		t.Errorf("%d %s", status, body)
	}
}

func TestUpload_TooLarge_Refused(t *testing.T) {
	t.Parallel()
	addr := uploadServer(t, 3<<20, ample)
	for size, want := range map[int]int{3 << 20: 200, 3<<20 + 1: 400, 6 << 20: 400} {
		c := begin(t, addr, int64(size))
		go func() { _, _ = io.WriteString(c, strings.Repeat("x", size)) }()
		if status, body := readAnswer(t, c); status != want {
			t.Errorf("%d bytes: %d %s", size, status, body)
		}
	}
}
