package console

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
)

// show shows the state of the instance.
func (c *overviewPages) show(r *http.Request) (*shown, error) {
	ctx := r.Context()
	f, err := c.Status.Instance(ctx)
	if err != nil {
		return nil, err
	}
	requests, _, err := c.Store.WaitingRequests(ctx)
	if err != nil {
		return nil, err
	}
	steps, err := c.steps(ctx, f.Daemons)
	if err != nil {
		return nil, err
	}
	minutes, err := c.minutes.read(ctx, c.site)
	if err != nil {
		return nil, err
	}
	var down []string
	for _, d := range f.Daemons {
		if !d.OK {
			down = append(down, d.Name)
		}
	}
	attention, err := c.findings.read(ctx, c.site, strings.Join(down, " "))
	if err != nil {
		return nil, err
	}
	return &shown{title: "Overview", template: "overview.html", data: pages.Overview{
		Facts: f, Pending: requests.Rows, Steps: steps, Minutes: minutes,
		Attention: attention[:min(len(attention), maxAttention)], Unlisted: max(0, len(attention)-maxAttention),
	}}, nil
}

const (
	shownMinutes = 60
	minutesLife  = 5 * time.Second
)

// minutes are the counts that all open pages share: they are read once in five seconds.
type minutes struct {
	mu   sync.Mutex
	at   time.Time
	last pages.Minutes
}

func (m *minutes) read(ctx context.Context, c *site) (pages.Minutes, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := c.Now()
	if age := now.Sub(m.at); age >= 0 && age < minutesLife {
		return m.last, nil
	}
	since := now.Truncate(time.Minute).Add(-(shownMinutes - 1) * time.Minute).UnixMilli()
	counted, all, err := rows.Minutes(ctx, c.Store, since, shownMinutes)
	if err != nil {
		return m.last, err
	}
	m.at, m.last = now, pages.Minutes{Rows: counted, Partly: !all}
	return m.last, nil
}
