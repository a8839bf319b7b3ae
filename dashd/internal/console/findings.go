package console

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
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
	last   atomic.Pointer[examined] // nil for none yet
}

// examined is the result of an examination.
type examined struct {
	at    time.Time // when it began
	found []facts.Fact
	down  string // as read was given it
}

// read returns the findings of the latest examination. It starts one and waits for it, but not for long: it may hang.
// down names the daemons that are not healthy: findings from a time when others were are stale.
func (f *findings) read(ctx context.Context, c *site, down string) ([]facts.Fact, error) {
	wait := findingsWait
	switch last := f.last.Load(); {
	case last == nil:
		wait = askTimeout
	case down == last.down && c.Now().Sub(last.at) < findingsLife && !c.Now().Before(last.at):
		return last.found, nil
	}
	done := f.flight.DoChan("", func() (any, error) { return nil, f.examine(context.WithoutCancel(ctx), c, down) })
	select {
	case result := <-done:
		if result.Err != nil {
			return nil, result.Err
		}
	case <-time.After(wait):
	}
	last := f.last.Load()
	if last == nil {
		last = &examined{}
	}
	if c.Now().Sub(last.at) > maxFindingsAge {
		old := facts.Fact{Text: "looking for problems takes long: this list is not up to date",
			Fix: "`dashd doctor` on the server shows why"}
		return append([]facts.Fact{old}, last.found...), nil
	}
	return last.found, nil
}

func (f *findings) examine(ctx context.Context, c *site, down string) (err error) {
	defer func() {
		if p := recover(); p != nil { // it would end dashd: no handler of a request catches it
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	began := c.Now()
	found, err := c.Examine(ctx)
	if err == nil {
		f.last.Store(&examined{began, found, down})
	}
	return err
}
