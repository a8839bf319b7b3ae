package adapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
)

// line is a platform with a connection, which goes as its script says, and holds once nothing is
// left of that.
type line struct {
	*fake
	script []func(context.Context, *Shell) error
	tries  []time.Time // when it connected
}

func (l *line) Listen(ctx context.Context, s *Shell) error {
	l.tries = append(l.tries, time.Now())
	if n := len(l.tries); n <= len(l.script) {
		return l.script[n-1](ctx, s)
	}
	s.Connected()
	<-ctx.Done()
	return ctx.Err()
}

// gaps are the pauses between the tries.
func (l *line) gaps() (all []time.Duration) {
	for i, at := range l.tries[1:] {
		all = append(all, at.Sub(l.tries[i]))
	}
	return all
}

// refuses is a try to connect that fails at once.
func refuses(err error) func(context.Context, *Shell) error {
	return func(context.Context, *Shell) error { return err }
}

// holds is a connection that breaks after a while.
func holds(d time.Duration, err error) func(context.Context, *Shell) error {
	return func(ctx context.Context, s *Shell) error {
		s.Connected()
		Pause(ctx, d)
		return err
	}
}

// connected starts a shell with a connection that goes by a script.
func (r *fixture) connected(script ...func(context.Context, *Shell) error) (l *line, log *strings.Builder, stop func()) {
	l, log = &line{fake: r.platform, script: script}, &strings.Builder{}
	r.as = l
	r.beats()
	return l, log, r.start(logged(log), redacting)
}

// beats replaces the heartbeat by one that records its rows.
func (r *fixture) beats() {
	r.heartbeat = daemon.NewHeartbeat("ircd", "v1", discard, func(_ context.Context, d rows.Daemon) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.beat = d
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.heartbeat.Run(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// expectConnection compares what operators see with what they should.
func (r *fixture) expectConnection(state daemon.Connection, detail string) {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.beat.Connection != string(state) || r.beat.Detail != detail {
		r.t.Errorf("connection %s %q, want %s %q", r.beat.Connection, r.beat.Detail, state, detail)
	}
}

// expectLines counts the lines of a log besides those about a connection that works.
func expectLines(t *testing.T, log *strings.Builder, want int) {
	t.Helper()
	if got := strings.Count(log.String(), "\n") - strings.Count(log.String(), "msg=connected"); got != want {
		t.Errorf("%d lines logged, want %d:\n%s", got, want, log)
	}
}

func TestListen_Fails_Reconnects(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var script []func(context.Context, *Shell) error
		for range 40 {
			script = append(script, refuses(errors.New("no route to "+secret)))
		}
		l, log, _ := r.connected(script...)
		pass(time.Minute)
		r.expectConnection(daemon.Degraded, "no route to [redacted]")
		row := r.out("", "what can be sent is not held up")
		r.look()
		r.expect(row, "sent: sent")
		pass(time.Hour)
		r.expectConnection(daemon.Connected, "")
		if len(l.tries) != 41 {
			t.Fatalf("%d tries", len(l.tries))
		}
		exact, at := 0, firstReconnect
		for i, gap := range l.gaps() {
			if gap < at/2 || gap > at+at/2 {
				t.Errorf("pause %d took %v, want about %v", i, gap, at)
			}
			if gap == at {
				exact++
			}
			at = min(at+at/2, maxReconnect)
		}
		if exact == 40 {
			t.Error("daemons that lose their connections together come back together")
		}
		expectLines(t, log, 1)
		if strings.Contains(log.String(), secret) {
			t.Error("the log tells the secret")
		}
	})
}

// Pauses are random: short and long ones overlap.
func TestListen_LongConnectionEnds_ResetsPauses(t *testing.T) {
	const rounds, tries = 12, 16
	down := errors.New("reset by peer")
	for _, tt := range []struct {
		name  string
		holds time.Duration
		short bool // all pauses afterwards
		lines int
	}{
		{"steadyAfter", steadyAfter + time.Second, true, 1 + rounds},
		{"not for long", steadyAfter - time.Second, false, 1},
	} {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			var script []func(context.Context, *Shell) error
			for i := range rounds * tries {
				if i%tries < tries-1 {
					script = append(script, refuses(down))
				} else {
					script = append(script, holds(tt.holds, down))
				}
			}
			l, log, _ := r.connected(script...)
			pass(time.Hour)
			gaps := l.gaps()
			longest := time.Duration(0)
			for i := tries - 1; i < len(gaps); i += tries {
				longest = max(longest, gaps[i]-tt.holds)
			}
			if short := longest <= firstReconnect+firstReconnect/2; short != tt.short || len(gaps) != rounds*tries {
				t.Errorf("pause of %v after %d tries", longest, len(gaps))
			}
			expectLines(t, log, tt.lines)
			r.expectConnection(daemon.Connected, "")
		})
	}
}

func TestListen_CredentialsRefused_ReportsAndRetries(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		bad := refuses(fmt.Errorf("get updates: %w", &Failure{Class: msg.Auth, Err: errors.New("401 for " + secret)}))
		l, log, _ := r.connected(bad, bad, bad)
		synctest.Wait()
		r.expectConnection(daemon.BadCredentials, "get updates: auth: 401 for [redacted]")
		pass(3 * authPause)
		for _, gap := range l.gaps() {
			if gap < authPause {
				t.Errorf("tried again after %v", gap)
			}
		}
		r.expectConnection(daemon.Connected, "") // they were fixed
		expectLines(t, log, 1)
	})
}

func TestListen_FailureWithWait_Waits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		l, _, _ := r.connected(refuses(failure(msg.Rate, 10*time.Minute)), refuses(failure(msg.Transient, 0)),
			refuses(failure(msg.Auth, time.Hour)))
		pass(2 * time.Hour)
		gaps := l.gaps()
		if len(gaps) != 3 || gaps[0] != 10*time.Minute || gaps[1] > 3*time.Second || gaps[2] != time.Hour {
			t.Errorf("pauses %v", gaps)
		}
	})
}

func TestListen_PanicOrNoError_Reconnects(t *testing.T) {
	tests := []struct {
		name, detail string
		how          func(context.Context, *Shell) error
	}{
		{"panic", "panic while listening: no " + "[redacted]", func(context.Context, *Shell) error { panic("no " + secret) }},
		{"end", "the connection ended", func(context.Context, *Shell) error { return nil }},
		{"its own cancellation", "context canceled", func(context.Context, *Shell) error { return context.Canceled }},
	}
	for _, tt := range tests {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			l, _, _ := r.connected(tt.how)
			synctest.Wait()
			r.expectConnection(daemon.Degraded, tt.detail)
			pass(2 * firstReconnect)
			r.expectConnection(daemon.Connected, "")
			if len(l.tries) != 2 {
				t.Errorf("%d tries", len(l.tries))
			}
		})
	}
}

// Whatever the connection does then is not an error.
func TestListen_Stop_EndsAtOnce(t *testing.T) {
	for name, script := range map[string][]func(context.Context, *Shell) error{
		"while it holds":     nil,
		"while it is broken": {refuses(failure(msg.Rate, time.Hour))},
		"with no error": {func(ctx context.Context, s *Shell) error {
			s.Connected()
			<-ctx.Done()
			return nil
		}},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			l, log, stop := r.connected(script...)
			pass(time.Minute)
			before, begin := log.String(), time.Now()
			stop()
			if took := time.Since(begin); took != 0 {
				t.Errorf("the stop took %v", took)
			}
			if log.String() != before {
				t.Errorf("the stop is logged:\n%s", log)
			}
			if len(l.tries) != 1 {
				t.Errorf("%d tries", len(l.tries))
			}
		})
	}
}

func TestConnected_UpdatesProbeTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		_, _, _ = r.connected()
		at := time.Now().UnixMilli()
		pass(2 * daemon.HeartbeatInterval)
		r.expectConnection(daemon.Connected, "")
		if r.beat.LastProbeAt != at || r.beat.LastEventAt != 0 {
			t.Errorf("row %+v", r.beat)
		}
	})
}

// Each attempt hangs for as long as its steps may take, until the platform is well again.
func TestListen_PlatformHangs_IsConnectedWithin15Seconds(t *testing.T) {
	const bound = 15 * time.Second
	for _, outage := range []time.Duration{time.Second, 20 * time.Second, time.Minute, 3 * time.Hour} {
		runInBubble(t, outage.String(), func(t *testing.T, r *fixture) {
			well := time.Now().Add(outage)
			hangs := func(ctx context.Context, s *Shell) error {
				if time.Now().Before(well) {
					Pause(ctx, ConnectTimeout)
					return context.DeadlineExceeded
				}
				s.Connected()
				<-ctx.Done()
				return ctx.Err()
			}
			l, _, _ := r.connected(slices.Repeat([]func(context.Context, *Shell) error{hangs}, 10_000)...)
			pass(outage + bound)
			r.expectConnection(daemon.Connected, "")
			if late := l.tries[len(l.tries)-1].Sub(well); late > bound {
				t.Errorf("connected after %v", late)
			}
		})
	}
}
