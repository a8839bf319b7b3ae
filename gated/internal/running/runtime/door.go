package runtime

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// maxDoorConns is how many connections a run may have through its door at once. Others
	// wait to be accepted.
	maxDoorConns = 64
	// doorDialTimeout is for an address of this machine.
	doorDialTimeout = 5 * time.Second
	// doorAcceptDelay is between attempts to accept a connection, when files are short.
	doorAcceptDelay = 50 * time.Millisecond
)

// door forwards connections from a sandbox's loopback to an address of this machine. Its
// listener was opened in the sandbox's network.
type door struct {
	listener net.Listener
	target   string
	cancel   context.CancelFunc
	permits  chan struct{}
	wg       sync.WaitGroup
}

func newDoor(l net.Listener, target string) *door {
	d := &door{listener: l, target: target, permits: make(chan struct{}, maxDoorConns)}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.wg.Go(func() { d.serve(ctx) })
	return d
}

// close ends the connections, too.
func (d *door) close() {
	d.cancel()
	_ = d.listener.Close()
	d.wg.Wait()
}

func (d *door) serve(ctx context.Context) {
	for {
		select {
		case d.permits <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := d.listener.Accept()
		if err == nil {
			d.wg.Go(func() {
				defer func() { <-d.permits }()
				d.forward(ctx, conn)
			})
			continue
		}
		<-d.permits
		select {
		case <-time.After(doorAcceptDelay):
		case <-ctx.Done():
			return
		}
	}
}

// forward copies both ways until both sides have ended, or the door is closed.
func (d *door) forward(ctx context.Context, inside net.Conn) {
	defer inside.Close()
	dialer := net.Dialer{Timeout: doorDialTimeout}
	outside, err := dialer.DialContext(ctx, "tcp", d.target)
	if err != nil {
		return // the agent sees a connection that ends
	}
	defer outside.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = inside.Close()
		_ = outside.Close()
	})
	defer stop()
	var other sync.WaitGroup
	other.Go(func() { copyHalf(outside, inside) })
	copyHalf(inside, outside)
	other.Wait()
}

// copyHalf passes the end of the input on.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(*net.TCPConn); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
	_ = from.Close()
}
