package runtime

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestSandbox_Forward_ReachesThatAddressAlone(t *testing.T) {
	needBwrap(t)
	attacker := buildAttacker(t)
	for _, n := range []Network{NetworkOwn, NetworkNone} {
		t.Run(string(n), func(t *testing.T) {
			e := newFixture(t, attacker)
			l := listenOn(t, "tcp4", "127.0.0.1:0")
			port := serveText(t, l, "gated")
			other := serveText(t, listenOn(t, "tcp4", "127.0.0.1:0"), "other")
			s := sandboxOf(e, attacker)
			s.Network, s.Forward = n, l.Addr().String()
			c := testRuntime{s, func(*Spec) {}}.start(t, e.spec)
			c.allowed(map[string]string{"dial 127.0.0.1:" + port: "gated", "dial localhost:" + port: "gated"})
			c.refused("dial 127.0.0.1:"+other, "dial [::1]:"+port, "listen 127.0.0.1:"+port)
			if exit := c.finish(); exit.Code != 0 || exit.Err != nil {
				t.Errorf("exit %+v", exit)
			}
		})
	}
	e := newFixture(t, attacker)
	s := sandboxOf(e, attacker)
	s.Network, s.Forward = NetworkNone, "no port"
	if _, err := s.Start(t.Context(), e.spec); err == nil || !strings.Contains(err.Error(), "missing port") {
		t.Errorf("an address without a port: %v", err)
	}
}

func newTestDoor(t *testing.T, handler http.Handler) (d *door, url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	l := listenOn(t, "tcp4", "127.0.0.1:0")
	d = newDoor(l, server.Listener.Addr().String())
	t.Cleanup(d.close)
	return d, "http://" + l.Addr().String()
}

func TestDoor_ForwardsRequestsAndHalfClosedConnections(t *testing.T) {
	d, url := newTestDoor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(url, "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || len(body) != 1<<20 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	conn, err := net.Dial("tcp", d.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi")
	_ = conn.(*net.TCPConn).CloseWrite()
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(answer), "\r\n\r\nhi") {
		t.Errorf("%q, %v", answer, err)
	}
}

func TestDoor_ManyConnections_AreBoundedAndEndWithTheDoor(t *testing.T) {
	var open atomic.Int64
	l := listenOn(t, "tcp4", "127.0.0.1:0")
	accepted := make(chan struct{}, 2*maxDoorConns)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			accepted <- struct{}{}
			go func() {
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
				open.Add(-1)
			}()
		}
	}()
	inside := listenOn(t, "tcp4", "127.0.0.1:0")
	d := newDoor(inside, l.Addr().String())
	for range maxDoorConns + 10 {
		conn, err := net.Dial("tcp", inside.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for range maxDoorConns {
		<-accepted
	}
	if n := open.Load(); n != maxDoorConns {
		t.Errorf("%d connections", n)
	}
	d.close()
	if !within(patience, func() bool { return open.Load() == 0 }) {
		t.Errorf("%d connections are left", open.Load())
	}
	_ = l.Close()
	<-done
}

func TestDoor_NothingListens_ConnectionsEnd(t *testing.T) {
	inside := listenOn(t, "tcp4", "127.0.0.1:0")
	d := newDoor(inside, "127.0.0.1:1")
	defer d.close()
	conn, err := net.Dial("tcp", inside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
