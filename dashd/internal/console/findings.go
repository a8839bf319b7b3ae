package console

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"arizuko/pkg/facts"
)

const (
	findingsLife   = 10 * time.Second // how old findings may be that the overview shows
	findingsWait   = time.Second / 4  // how long it waits for newer ones than it has
	maxFindingsAge = time.Minute      // from which it says that they are old
	maxAttention   = 12               // how many of them it lists
)

// findings are the problems that the rows show. All open pages share them.
type findings struct {
	flight singleflight.Group

	mu   sync.Mutex
	at   time.Time // when last was looked for, zero for never
	last []facts.Fact
	down string // as read was given it
}

// read returns the findings of the latest examination. It starts one and waits for it, but not for long: it may hang.
// down names the daemons that are not healthy: findings from a time when others were are stale.
func (f *findings) read(ctx context.Context, c *site, down string) ([]facts.Fact, error) {
	wait := findingsWait
	switch at, last, before := f.known(); {
	case at.IsZero():
		wait = askTimeout
	case down == before && c.Now().Sub(at) < findingsLife && !c.Now().Before(at):
		return last, nil
	}
	examined := f.flight.DoChan("", func() (any, error) { return nil, f.examine(context.WithoutCancel(ctx), c, down) })
	select {
	case result := <-examined:
		if result.Err != nil {
			return nil, result.Err
		}
	case <-time.After(wait):
	}
	at, last, _ := f.known()
	if c.Now().Sub(at) > maxFindingsAge {
		old := facts.Fact{Text: "looking for problems takes long: this list is not up to date",
			Fix: "`dashd doctor` on the server shows why"}
		last = append([]facts.Fact{old}, last...)
	}
	return last, nil
}

func (f *findings) known() (at time.Time, last []facts.Fact, down string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.last, f.down
}

func (f *findings) examine(ctx context.Context, c *site, down string) (err error) {
	defer func() {
		if p := recover(); p != nil { // it would end dashd: no handler of a request catches it
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	began := c.Now()
	found, err := c.Examine(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.last, f.down = began, found, down
	return nil
}
