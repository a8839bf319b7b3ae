package adapter

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
)

const (
	// firstReconnect and longReconnect bound the pauses between attempts to connect; each is
	// drawn from around its length, so that many daemons don't come back as one.
	firstReconnect = time.Second
	longReconnect  = time.Minute
	// steady is how long a connection must have held for its end to be a surprise.
	steady = time.Minute
)

// Listener is a platform with a connection to keep.
type Listener interface {
	// Listen connects, calls Connected, and hands what happens to Receive, until the
	// connection breaks or ctx ends. It does not connect again by itself. Its error may be a
	// *Failure: one of class Auth waits for an operator, and After is obeyed.
	Listen(ctx context.Context, s *Shell) error
}

// Connected says that the platform's connection works.
func (s *Shell) Connected() {
	s.online.Store(true)
	s.Heartbeat.Report(daemon.Connected, "")
	s.Heartbeat.Probe()
}

// keepConnected listens, again and again, until ctx ends.
func (s *Shell) keepConnected(ctx context.Context, l Listener) {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstReconnect, longReconnect
	told := ""
	for ctx.Err() == nil {
		began := s.Now()
		err := s.listen(ctx, l)
		s.online.Store(false)
		if ctx.Err() != nil {
			return
		}
		if s.Now().Sub(began) > steady {
			pauses.Reset()
			told = ""
		}
		wait := pauses.NextBackOff()
		state, detail := daemon.Degraded, s.Redact(err.Error())
		var failure *Failure
		if errors.As(err, &failure) {
			wait = max(wait, failure.After)
			if failure.Class == msg.Auth {
				state, wait = daemon.BadCredentials, max(wait, authPause)
			}
		}
		s.Heartbeat.Report(state, detail)
		if detail != told { // once, not at each attempt
			s.Log.Error("not connected; trying again", "state", state, "in", wait.Round(time.Millisecond), "err", detail)
			told = detail
		}
		pause(ctx, wait)
	}
}

// listen is Listen, which costs a reconnect if it breaks.
func (s *Shell) listen(ctx context.Context, l Listener) (err error) {
	defer s.survive("listening", &err)
	if err = l.Listen(ctx, s); err == nil {
		err = errors.New("the connection ended")
	}
	return err
}

// offline says that a platform with a connection to keep has none.
func (s *Shell) offline() bool {
	_, listens := s.platform.(Listener)
	return listens && !s.online.Load()
}
