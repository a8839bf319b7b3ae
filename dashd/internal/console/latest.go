package console

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// latest is a result that all pages share, and that takes long to make.
type latest[T any] struct {
	flight singleflight.Group
	last   atomic.Pointer[T]
}

// get returns the latest result if it is fresh. Else it makes one, and waits for it: until askTimeout if there is none
// yet, else not as long. Without a new one in time it returns the last one, nil if there is none.
func (l *latest[T]) get(ctx context.Context, wait time.Duration, fresh func(*T) bool,
	do func(context.Context) (*T, error)) (*T, error) {
	switch last := l.last.Load(); {
	case last == nil:
		wait = askTimeout
	case fresh(last):
		return last, nil
	}
	done := l.flight.DoChan("", func() (_ any, err error) {
		defer func() {
			if p := recover(); p != nil { // it would end dashd: no handler of a request catches it
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		made, err := do(context.WithoutCancel(ctx))
		if err == nil {
			l.last.Store(made)
		}
		return nil, err
	})
	select {
	case result := <-done:
		if result.Err != nil {
			return nil, result.Err
		}
	case <-time.After(wait):
	}
	return l.last.Load(), nil
}
