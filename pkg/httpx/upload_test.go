package httpx

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// uploadTo sends the beginning of a request with a body of a length to a server that answers with the size of each body,
// or with its error.
func uploadTo(t *testing.T, limit int64, stall time.Duration, length int64) net.Conn {
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
	s := serve(t, stall, time.Minute, router.ServeHTTP)
	return s.open(t, fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length))
}

// A body that takes four times as long as others may, and is larger, passes while it keeps coming.
func TestUpload_SlowAndSteady_Passes(t *testing.T) {
	t.Parallel()
	const stall, pause, piece, pieces = 3 * time.Second, 250 * time.Millisecond, 200_000, 16 // longer in all than a stall
	c := uploadTo(t, 10<<20, stall, pieces*piece)
	for range pieces {
		if _, err := io.WriteString(c, strings.Repeat("x", piece)); err != nil {
			t.Fatal(err)
		}
		<-time.After(pause)
	}
	if res, body := answer(t, c); res.StatusCode != 200 || body != fmt.Sprint(pieces*piece) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestUpload_Stalled_Ends(t *testing.T) {
	t.Parallel()
	c := uploadTo(t, 10<<20, 100*time.Millisecond, 1<<20)
	if _, err := io.WriteString(c, strings.Repeat("x", 500_000)); err != nil {
		t.Fatal(err)
	}
	if res, body := answer(t, c); res.StatusCode != 400 || !strings.Contains(body, "nothing received for 100ms") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is kept")
	}
}

// A client that sends a byte now and then holds no connection for long.
func TestUpload_Trickling_Ends(t *testing.T) {
	t.Parallel()
	c := uploadTo(t, 10<<20, 100*time.Millisecond, 1<<20)
	go func() {
		for { // until the server closes it
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
			<-time.After(20 * time.Millisecond)
		}
	}()
	if res, body := answer(t, c); res.StatusCode != 400 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestUpload_TooLarge_Refused(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{3 << 20: 200, 3<<20 + 1: 400, 6 << 20: 400} {
		c := uploadTo(t, 3<<20, ample, int64(size))
		go func() { _, _ = io.WriteString(c, strings.Repeat("x", size)) }()
		if res, body := answer(t, c); res.StatusCode != want {
			t.Errorf("%d bytes: %d %s", size, res.StatusCode, body)
		}
	}
}
