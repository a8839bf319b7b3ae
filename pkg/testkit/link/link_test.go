package link_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/testkit/link"
)

// serve starts a server that sends back each line, and a link to it.
func serve(t *testing.T) *link.Link {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { _, _ = io.Copy(conn, conn); _ = conn.Close() })
		}
	})
	l, err := link.New("127.0.0.1:0", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Close()
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		serving.Wait()
		goleak.VerifyNone(t)
	})
	return l
}

// patience is how long an answer may take on a busy machine.
const patience = 30 * time.Second

// ask sends a line and returns the answer.
func ask(conn net.Conn, line string, timeout time.Duration) (string, error) {
	if _, err := conn.Write([]byte(line + "\n")); err != nil {
		return "", err
	}
	return hear(conn, timeout)
}

func hear(conn net.Conn, timeout time.Duration) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}

func dial(t *testing.T, l *link.Link) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestLink_Reset_EndsConnectionsUntilItIsHealed(t *testing.T) {
	l := serve(t)
	conn := dial(t, l)
	if got, err := ask(conn, "one", patience); got != "one\n" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	l.Set(link.Reset)
	for _, c := range []net.Conn{conn, dial(t, l)} {
		if got, err := ask(c, "two", patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("while cut: %q, %v", got, err)
		}
	}
	l.Set(link.None)
	if got, err := ask(dial(t, l), "three", patience); got != "three\n" || err != nil {
		t.Errorf("healed: %q, %v", got, err)
	}
}

func TestLink_Hole_HoldsUpWhatArrivesOnceItIsHealed(t *testing.T) {
	l := serve(t)
	conn := dial(t, l)
	if got, err := ask(conn, "one", patience); got != "one\n" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	l.Set(link.Hole)
	late := dial(t, l)
	for _, c := range []net.Conn{conn, late} {
		if got, err := ask(c, "two", 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("in the hole: %q, %v", got, err)
		}
	}
	l.Set(link.None)
	for _, c := range []net.Conn{conn, late} {
		if got, err := hear(c, patience); got != "two\n" || err != nil {
			t.Errorf("healed: %q, %v", got, err)
		}
	}
}

func TestLink_ClosedInAHole_EndsItsConnections(t *testing.T) {
	l := serve(t)
	conn := dial(t, l)
	if _, err := ask(conn, "one", patience); err != nil {
		t.Fatal(err)
	}
	l.Set(link.Hole)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(conn, "two", patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("closed: %q, %v", got, err)
	}
}
