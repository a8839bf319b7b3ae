package httpx

import (
	"bufio"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/apierr"
)

// A talk is a connection on a daemon's socket that carries one kind of question, each as a value of encoding/gob, and
// the answers in the same order. A GET request with this Upgrade header begins it. No header or text is parsed, and no
// question handed to another goroutine. The number grows with a change of values that an older side cannot decode.
const talkProtocol = "arizuko-gob/1"

// reply is before each answer. With an error no answer follows.
type reply struct {
	Kind  apierr.Kind // "" for none
	Error string
}

// Talk asks questions of one kind, one after the other. It is safe for concurrent use.
type Talk struct {
	client *Client
	path   string

	mu      sync.Mutex
	conn    net.Conn // nil for none
	in      *gob.Decoder
	out     *gob.Encoder
	sending *bufio.Writer
	refused time.Time // when the daemon took no talk last
}

// retryTalk is how long questions go by POST to a daemon that takes no talk, such as one of an older version.
const retryTalk = time.Minute

// Talk returns a talk with a daemon. Questions to one that has no socket on this machine go by POST.
func (c *Client) Talk(path string) *Talk { return &Talk{client: c, path: path} }

// String is the daemon's name in errors, as that of its client.
func (t *Talk) String() string { return t.client.String() }

// Ask asks as Do does by POST.
func (t *Talk) Ask(ctx context.Context, in, out any) error {
	if t.client.socket == "" {
		return t.client.Do(ctx, http.MethodPost, t.path, in, out)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	takes, err := t.connect(ctx)
	if err == nil && !takes {
		return t.client.Do(ctx, http.MethodPost, t.path, in, out)
	}
	var r reply
	if err == nil {
		r, err = t.exchange(ctx, in, out)
	}
	switch {
	case err != nil:
		return apierr.New(apierr.Unavailable, "%s does not answer: %w", t.client,
			&url.Error{Op: "Ask", URL: t.client.Base + t.path, Err: err})
	case r.Kind != "":
		return apierr.New(r.Kind, "%w", answeredError(r.Error))
	}
	return nil
}

// exchange sends a question, and reads its answer unless that is an error. The talk ends unless all of it was read.
func (t *Talk) exchange(ctx context.Context, in, out any) (r reply, err error) {
	conn, whole := t.conn, false
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() { // the connection has that deadline, or gets it
			whole, err = false, context.Cause(ctx)
		}
		if !whole {
			t.close()
		}
	}()
	if err = t.out.Encode(in); err == nil {
		err = t.sending.Flush()
	}
	if err == nil {
		err = t.in.Decode(&r)
	}
	if err == nil && r.Kind == "" {
		err = t.in.Decode(out)
	}
	whole = err == nil && r.Kind != apierr.BadRequest // a daemon that cannot decode a question ends the talk
	return r, err
}

// connect begins the talk unless it goes on. It reports false if the daemon takes none.
func (t *Talk) connect(ctx context.Context) (takes bool, err error) {
	if t.conn != nil && quiet(t.conn) {
		return true, nil
	}
	t.close()
	if time.Since(t.refused) < retryTalk {
		return false, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.client.Base+t.path, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", talkProtocol)
	conn, err := dialLocal(t.client.socket)(ctx, "", "")
	if err != nil {
		return false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	reading := bufio.NewReader(conn)
	var res *http.Response
	if err = req.Write(conn); err == nil {
		res, err = http.ReadResponse(reading, req)
	}
	if err != nil {
		return false, errors.Join(cmp.Or(context.Cause(ctx), err), conn.Close())
	}
	switch res.StatusCode {
	case http.StatusSwitchingProtocols:
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		t.refused = time.Now()
		fallthrough
	default: // it may take talks later, such as when it has started
		return false, conn.Close()
	}
	t.conn, t.in, t.sending = conn, gob.NewDecoder(reading), bufio.NewWriter(conn)
	t.out = gob.NewEncoder(t.sending)
	return true, nil
}

func (t *Talk) close() {
	if t.conn != nil {
		_ = t.conn.Close()
	}
	t.conn = nil
}

// quiet reports whether the peer of a connection has neither closed it nor sent anything. A question that is sent on a
// closed connection fails although the daemon, which has been started again, would answer it.
func quiet(c net.Conn) bool {
	conn, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var got error
	err = raw.Control(func(fd uintptr) {
		_, _, got = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && errors.Is(got, unix.EAGAIN)
}

// ServeTalk answers the questions of a talk, each within the timeout if answer heeds its context, which does not end
// when the client goes away. Others than those who call on the daemon's socket are refused. Server.Close does not wait
// for a talk: it ends with the process.
func ServeTalk[In, Out any](timeout time.Duration, answer func(context.Context, *In) (*Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isProven(r) || r.Header.Get("Upgrade") != talkProtocol {
			Error(w, apierr.New(apierr.BadRequest, "ask by POST"))
			return
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			Error(w, err)
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Time{}) // in place of the server's own; a closed connection fails below
		fmt.Fprintf(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", talkProtocol)
		err = buf.Flush()
		in, out := gob.NewDecoder(buf.Reader), gob.NewEncoder(buf.Writer)
		rec := recorderOf(w)
		if rec != nil {
			rec.talked = true
		}
		for err == nil {
			question := new(In)
			if err = in.Decode(question); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
				errors.As(err, new(net.Error)) {
				return
			}
			begun, given, failed := time.Now(), (*Out)(nil), err
			if failed == nil {
				given, failed = answerTalk(r.Context(), timeout, question, answer)
			} else { // of another version; what follows could not be decoded either
				failed = apierr.New(apierr.BadRequest, "the question cannot be decoded: %w", failed)
			}
			if rec != nil {
				rec.note(r, http.MethodPost, begun, statusOf(failed), failed) // as if it had come by one
			}
			err = errors.Join(err, writeAnswer(out, given, failed), buf.Flush())
		}
	}
}

func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return apierr.KindOf(err).Status()
}

func writeAnswer(out *gob.Encoder, given any, failed error) error {
	if failed != nil {
		return out.Encode(reply{apierr.KindOf(failed), messageOf(failed)})
	}
	if err := out.Encode(reply{}); err != nil {
		return err
	}
	return out.Encode(given)
}

// answerTalk answers one question. It returns a panic as an error.
func answerTalk[In, Out any](ctx context.Context, timeout time.Duration, question *In,
	answer func(context.Context, *In) (*Out, error)) (given *Out, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout-answerDelay)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return answer(ctx, question)
}
