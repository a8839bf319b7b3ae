package console

import (
	"sync"
	"time"
)

// cached is a value that all open pages share, and when it was read.
type cached[T any] struct {
	mu    sync.Mutex
	at    time.Time
	value T
}

// get returns the value, read again if it is older than life or stale says so. An error keeps the value.
func (c *cached[T]) get(now func() time.Time, life time.Duration, stale func(T) bool, read func() (T, error)) (T,
	error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age := now().Sub(c.at); age >= 0 && age < life && !stale(c.value) {
		return c.value, nil
	}
	value, err := read()
	if err == nil {
		c.at, c.value = now(), value
	}
	return c.value, err
}
