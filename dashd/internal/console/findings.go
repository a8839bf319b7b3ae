package console

import (
	"context"
	"sync"
	"time"

	"arizuko/dashd/internal/doctor"
	"arizuko/dashd/internal/pages"
)

const (
	// findingsLife is how old findings may be that the overview shows.
	findingsLife = 10 * time.Second
	// maxAttention is how many of them it lists.
	maxAttention = 12
)

// findings are what is wrong by the rows. All open pages share them.
type findings struct {
	mu   sync.Mutex
	at   time.Time
	last []pages.Attention
}

func (f *findings) read(ctx context.Context, c *Console) ([]pages.Attention, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := c.Now()
	if age := now.Sub(f.at); age >= 0 && age < findingsLife {
		return f.last, nil
	}
	found, err := c.Examine(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]pages.Attention, len(found))
	for i, each := range found {
		all[i] = pages.Attention{Text: each.Text, Fix: each.Fix, Bad: each.Level == doctor.Problem, Page: remedyPages()[each.ID]}
	}
	f.at, f.last = now, all
	return all, nil
}

// remedyPages are the pages on which operators see more of a finding, or fix it.
func remedyPages() map[string]pages.Link {
	failed, lost := pages.Link{Path: "/turns?state=failed", Text: "Failed turns"}, pages.Link{Path: "/lost", Text: "Lost and found"}
	approvals, queued := pages.Link{Path: "/approvals", Text: "Approvals"}, pages.Link{Path: "/turns?state=queued", Text: "Queued turns"}
	return map[string]pages.Link{
		"undecided": {Path: "/messages?disposition=undecided", Text: "Undecided messages"}, "unsent": {Path: "/messages?state=waiting", Text: "Messages that are to be sent"},
		"parked": {Path: "/lost?reason=parked", Text: "Parked messages"}, "requests": approvals, "requests-limited": approvals, "clock-request": approvals,
		"turns-failed": failed, "group-fails": failed, "queue": queued, "queue-busy": queued, "clock-turn": queued, "turn-lost": {Path: "/turns?state=running", Text: "Running turns"},
		"delivery-failed": lost, "delivery-ambiguous": lost, "reminders": {Path: "/reminders", Text: "Reminders"},
	}
}
