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
	// firstReconnect and maxReconnect bound the mean pauses between attempts to connect. Each pause is
	// between half and one and a half of that, so that many daemons don't reconnect at once: with
	// ConnectTimeout it leaves some seconds of the 15 in which a platform is connected after an outage.
	firstReconnect = time.Second
	maxReconnect   = 2500 * time.Millisecond
	// steadyAfter is how long a connection must have worked for the pauses to start over.
	steadyAfter = time.Minute
)

// Listener keeps a platform's connection.
type Listener interface {
	// Listen connects, calls Connected, and passes events to Receive, until the connection breaks
	// or ctx ends. It does not reconnect by itself. Its error may be a *Failure: one of class Auth
	// waits for an operator, and After is obeyed.
	Listen(ctx context.Context, s *Shell) error
}

// Connected reports that the platform's connection works.
func (s *Shell) Connected() {
	if s.admission.connection(true, false) {
		s.Log.Info("connected", "platform", s.Platform)
	}
	_, words := s.competing.state()
	s.Heartbeat.Report(daemon.Connected, words)
	s.Heartbeat.Probe()
}

// keepConnected listens, and reconnects, until ctx ends.
func (s *Shell) keepConnected(ctx context.Context) {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstReconnect, maxReconnect
	logged := ""
	for ctx.Err() == nil {
		began := s.Now()
		err := s.listen(ctx)
		var failure *Failure
		s.admission.connection(false, errors.As(err, &failure) && failure.refused())
		if ctx.Err() != nil {
			return
		}
		s.counters.reconnects.Inc()
		if s.Now().Sub(began) > steadyAfter {
			pauses.Reset()
			logged = ""
		}
		wait := pauses.NextBackOff()
		state, detail := daemon.Degraded, s.Redact(err.Error())
		if failure != nil {
			wait = max(wait, failure.After)
			if failure.Class == msg.Auth {
				state, wait = daemon.BadCredentials, max(wait, authPause)
			}
		}
		s.Heartbeat.Report(state, detail)
		if detail != logged { // once, not at each attempt
			s.logDisconnected(state, wait, detail)
			logged = detail
		}
		Pause(ctx, wait)
	}
}

func (s *Shell) logDisconnected(state daemon.Connection, wait time.Duration, detail string) {
	log := s.Log.With("platform", s.Platform, "state", state, "wait", wait.Round(time.Millisecond), "err", detail)
	if state == daemon.BadCredentials {
		log.Error("credentials refused; reconnecting")
		return
	}
	log.Error("disconnected; reconnecting")
}

// listen calls Listen; a panic in it ends only the connection.
func (s *Shell) listen(ctx context.Context) (err error) {
	defer s.recoverPanic("listening", &err)
	if err = s.Listener.Listen(ctx, s); err == nil {
		err = errors.New("the connection ended")
	}
	return err
}
