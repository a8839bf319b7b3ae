package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"arizuko/deploy/e2e/invariants"
)

const (
	// speakEvery is how often somebody writes, on average.
	speakEvery = 40 * time.Millisecond
	// troubleEvery is how often something befalls a daemon while it is stormy.
	troubleEvery = 2 * time.Second
	// hangs is how long a daemon stands still at most.
	hangs = 3 * time.Second
	// clockMost is how far the clock jumps.
	clockMost = 2 * time.Hour
	// warmUp is how long daemons may take in the calm to reach their size.
	warmUp = 10 * time.Second
)

// wild runs some of the agents of the second group as people write agents at first: they are
// noisy, break their frames or say far too much in one, hang, don't want to go, and leave
// children behind.
const wild = `case "$PWD:$(($$ % 20))" in
*/second:0) yes noise | head -c 200000; yes noise | head -c 200000 >&2;;
*/second:1) echo ---ARIZUKO_OUTPUT_START---; echo '{"status":'; echo ---ARIZUKO_OUTPUT_END---;;
*/second:2) echo ---ARIZUKO_OUTPUT_START---; yes x | head -c 3000000; echo ---ARIZUKO_OUTPUT_END---;;
*/second:3) exec sleep 1000;;
*/second:4) trap '' TERM;;
*/second:5) sleep 1000 & ;;
esac; exec `

// soak has people write for a time: the first two thirds in a storm of deaths, hangs and jumps of
// the clock, the last in a calm in which only agents fail. In the calm no daemon may grow.
func soak(ctx context.Context, bin string, seed uint64, lasts time.Duration, out io.Writer) (v *verdict, err error) {
	clock := filepath.Join(bin, "clock")
	t, err := open(ctx, bin, seed, "FAILPOINT_CLOCK="+clock, "TURN_ATTEMPTS=2", "AGENT_TIMEOUT=3s",
		"AGENT_COMMAND="+wild+filepath.Join(bin, "demo"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	t.crowd.hostile, t.clockSet = true, true
	s := &storm{trial: t, clock: clock, count: map[string]int{}}
	if err := s.storm(ctx, lasts*2/3); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%d messages, %v\n", len(t.crowd.all), s.count)
	growth, err := t.calm(ctx, lasts/3, out)
	if err != nil {
		return nil, err
	}
	err = t.settle(ctx)
	if err == nil {
		err = t.finish(ctx)
	}
	if err != nil && !errors.Is(err, errStuck) {
		return nil, err
	}
	fmt.Fprintf(out, "%d messages in all\n", len(t.crowd.all))
	v, err = t.judge(out, func(i invariants.Invariant) bool { return i.Clocked })
	if v != nil && !v.good() {
		fmt.Fprint(out, t.complaints())
	}
	return v, errors.Join(err, growth)
}

// storm is trouble for the daemons while people write.
type storm struct {
	*trial
	clock string // the file that sets it
	count map[string]int
}

func (s *storm) storm(ctx context.Context, lasts time.Duration) error {
	until := time.Now().Add(lasts)
	next := time.Now().Add(troubleEvery)
	for time.Now().Before(until) && ctx.Err() == nil {
		s.chat(ctx)
		if time.Now().Before(next) {
			continue
		}
		if err := s.trouble(ctx); err != nil {
			return err
		}
		next = time.Now().Add(time.Duration(s.random.Int64N(int64(2 * troubleEvery))))
	}
	return ctx.Err()
}

// chat is somebody writing, and a while of silence.
func (t *trial) chat(ctx context.Context) {
	t.crowd.speak(ctx)
	pause(ctx, time.Duration(t.random.Int64N(int64(2*speakEvery))))
}

func (s *storm) trouble(ctx context.Context) error {
	name := daemons[s.random.IntN(len(daemons))]
	what := []string{"kill", "kill", "stop", "hang", "clock", "platform", "platform"}[s.random.IntN(7)]
	s.count[what]++
	switch what {
	case "kill":
		if err := s.Kill(name); err != nil {
			return err
		}
	case "stop":
		stopping, cancel := context.WithTimeout(ctx, stopMost)
		defer cancel()
		if err := s.Stop(stopping, name); err != nil {
			return err
		}
	case "hang":
		return s.hang(ctx, name)
	case "platform":
		s.upset()
		return nil
	case "clock":
		return s.setClock(time.Duration(s.random.Int64N(int64(2*clockMost))) - clockMost)
	}
	s.chat(ctx)
	return s.up(ctx, name)
}

// hang has a daemon stand still for a while, wherever it is.
func (s *storm) hang(ctx context.Context, name string) error {
	p := s.Process(name)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for until := time.Now().Add(time.Duration(s.random.Int64N(int64(hangs)))); time.Now().Before(until) && ctx.Err() == nil; {
		s.chat(ctx)
	}
	return p.Signal(syscall.SIGCONT)
}

// setClock sets the clock of all daemons ahead, or behind.
func (s *storm) setClock(ahead time.Duration) error {
	fresh := s.clock + ".new"
	if err := os.WriteFile(fresh, []byte(strconv.FormatInt(int64(ahead.Seconds()), 10)), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, s.clock)
}
