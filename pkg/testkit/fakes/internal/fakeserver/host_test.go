package fakeserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/testkit/fakes/internal/fakeserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is how long a test waits for an event.
const timeout = 10 * time.Second

// platform is the smallest fake: /slow is delayed by an hour, all else is answered at once.
type platform struct {
	fakeserver.Host
	entered chan struct{} // one for each call of /slow
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.AbortIfUnreachable()
	p.LearnBase(r.Host)
	if r.URL.Path == "/slow" {
		p.entered <- struct{}{}
		p.Hold(r.Context(), time.Hour)
	}
	fmt.Fprint(w, p.Base())
}

// get returns the answer of a URL, "" for a broken connection.
func get(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestHost_SetReachableAndClose(t *testing.T) {
	p := &platform{entered: make(chan struct{})}
	base, err := p.StartWith("127.0.0.1:0", p)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	slow := func() <-chan string {
		answer := make(chan string, 1)
		go func() { answer <- get(t, base+"/slow") }()
		<-p.entered
		return answer
	}
	reached := func(when string, want bool) {
		t.Helper()
		if got := get(t, base); (got == base) != want || got != "" && !want {
			t.Errorf("%s: got %q", when, got)
		}
		if alive := p.ConnContext().Err() == nil; alive != want {
			t.Errorf("%s: alive is %v", when, alive)
		}
	}
	reached("started", true)
	open, conns := slow(), p.ConnContext()
	p.SetReachable(false)
	if answer := <-open; answer != "" || conns.Err() == nil {
		t.Errorf("an open request got %q", answer)
	}
	reached("unreachable", false)
	p.SetReachable(false)
	p.SetReachable(true)
	reached("reachable again", true)
	conns = p.ConnContext()
	p.SetReachable(true) // no change
	open = slow()
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if answer := <-open; answer != "" || conns.Err() == nil {
		t.Errorf("an open request got %q at Close", answer)
	}
	reached("closed", false)
	if again, err := p.StartWith(strings.TrimPrefix(base, "http://"), p); err != nil || again != base {
		t.Fatalf("started again at %s: %v", again, err)
	}
	reached("started again", true)
	if _, err := new(fakeserver.Host).StartWith(strings.TrimPrefix(base, "http://"), p); err == nil {
		t.Error("two fakes at one address")
	}
}

func TestHost_Hold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tests := []struct {
			name   string
			during func(*fakeserver.Host)
			delay  time.Duration
			want   time.Duration
			broken bool
		}{
			{"no delay", func(*fakeserver.Host) {}, 0, 0, false},
			{"a delay", func(*fakeserver.Host) {}, 9 * time.Second, 9 * time.Second, false},
			{"unreachable meanwhile", func(h *fakeserver.Host) { h.SetReachable(false) }, 9 * time.Second, time.Second, true},
			{"client gone meanwhile", func(*fakeserver.Host) { cancel() }, 9 * time.Second, time.Second, true},
		}
		for _, tt := range tests {
			h := &fakeserver.Host{}
			stop := time.AfterFunc(time.Second, func() { tt.during(h) })
			begin := time.Now()
			broken := aborts(func() { h.Hold(ctx, tt.delay) })
			if took := time.Since(begin); took != tt.want || broken != tt.broken {
				t.Errorf("%s: broken is %v after %v", tt.name, broken, took)
			}
			stop.Stop()
		}
	})
}

// aborts reports whether do aborts the request.
func aborts(do func()) (broken bool) {
	defer func() { broken = recover() == http.ErrAbortHandler }()
	do()
	return false
}

func TestHost_SetAnsweringAndSetPaging(t *testing.T) {
	p := &platform{entered: make(chan struct{})}
	base, err := p.StartWith("127.0.0.1:0", p)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, set := range []func(){func() { p.SetAnswering(false) }, func() { p.SetPaging(http.StatusBadGateway) }} {
		conns := p.ConnContext()
		if set(); conns.Err() == nil {
			t.Error("connections are still open")
		}
	}
	if got := get(t, base); !strings.Contains(got, "<h1>Bad Gateway</h1>") {
		t.Errorf("got %q", got)
	}
	p.SetPaging(0)
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	for range 2 {
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the request got %d bytes, %v", n, err)
		}
		p.SetAnswering(true)
	}
	if got := get(t, base); got != base {
		t.Errorf("answering again: got %q", got)
	}
}
