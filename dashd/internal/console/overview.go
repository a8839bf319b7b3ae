package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
)

// show shows the state of the instance.
func (c *overviewPages) show(r *http.Request) (*shown, error) {
	ctx := r.Context()
	f, err := c.Status.Instance(ctx)
	if err != nil {
		return nil, err
	}
	requests, _, err := factrows.WaitingRequests(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	steps, err := c.steps(ctx, f.Daemons)
	if err != nil {
		return nil, err
	}
	minutes, err := c.countMinutes(ctx)
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
	return &shown{data: pages.Overview{
		Facts: f, Down: len(down), Pending: requests.Rows, Steps: steps, Minutes: minutes,
		Attention: attention[:min(len(attention), maxAttention)], Unlisted: max(0, len(attention)-maxAttention),
	}}, nil
}

const shownMinutes = 60

// countMinutes counts the messages of the last hour by minute.
func (c *overviewPages) countMinutes(ctx context.Context) (pages.Minutes, error) {
	since := c.Now().Truncate(time.Minute).Add(-(shownMinutes - 1) * time.Minute).UnixMilli()
	counted, all, err := rows.Minutes(ctx, c.Store, since, shownMinutes)
	return pages.Minutes{Rows: counted, Partly: !all}, err
}
