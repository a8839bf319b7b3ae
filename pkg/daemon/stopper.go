package daemon

import (
	"context"
	"log/slog"
	"sync"
)

// Stopper collects, while a process starts, how to undo each step. The zero value is empty.
// It is safe for concurrent use.
type Stopper struct {
	mu    sync.Mutex
	steps []step
}

type step struct {
	name string
	stop func(context.Context) error
}

// Add registers how to stop what was just started.
func (s *Stopper) Add(name string, stop func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step{name, stop})
}

// StopAll runs the steps, last added first, and forgets them. A failing step is logged and
// does not keep the others from running; ctx limits them all together.
func (s *Stopper) StopAll(ctx context.Context, log *slog.Logger) {
	for {
		last, ok := s.pop()
		if !ok {
			return
		}
		if err := last.stop(ctx); err != nil {
			log.Error("stopping", "what", last.name, "err", err)
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
