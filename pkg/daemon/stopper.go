package daemon

import (
	"context"
	"log/slog"
	"sync"
)

// Stopper collects how to undo each step of a start. The zero value is empty. It is safe for
// concurrent use.
type Stopper struct {
	mu    sync.Mutex
	steps []step
}

type step struct {
	name string
	stop func(context.Context) error
}

// Add registers how to stop the part that has just been started.
func (s *Stopper) Add(name string, stop func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step{name, stop})
}

// StopAll runs the steps, last added first, and removes them. A step that fails is logged and the
// others still run; ctx bounds them all together.
func (s *Stopper) StopAll(ctx context.Context, log *slog.Logger) {
	for {
		last, ok := s.pop()
		if !ok {
			return
		}
		if err := last.stop(ctx); err != nil {
			log.Error("stop failed", "step", last.name, "err", err)
		}
	}
}

func (s *Stopper) pop() (step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps) == 0 {
		return step{}, false
	}
	last := s.steps[len(s.steps)-1]
	s.steps = s.steps[:len(s.steps)-1]
	return last, true
}
