package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/dashd/internal/status"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

func (c *Console) overview(r *http.Request) (*shown, error) {
	data, err := c.instance(r.Context())
	return &shown{title: "Overview", template: "overview.html", data: data}, err
}

func (c *Console) instance(ctx context.Context) (pages.Overview, error) {
	none := pages.Overview{}
	f, err := c.Status.Instance(ctx)
	if err != nil {
		return none, err
	}
	requests, _, err := factrows.WaitingRequests(ctx, c.Store)
	if err != nil {
		return none, err
	}
	steps, err := c.steps(ctx, f.Daemons)
	if err != nil {
		return none, err
	}
	minutes, err := c.minutes.read(ctx, c)
	if err != nil {
		return none, err
	}
	var down []string
	for _, d := range f.Daemons {
		if !d.OK {
			down = append(down, d.Name)
		}
	}
	attention, err := c.findings.read(ctx, c, strings.Join(down, " "))
	if err != nil {
		return none, err
	}
	shown := pages.Overview{
		Attention: attention[:min(len(attention), maxAttention)], Unlisted: max(0, len(attention)-maxAttention),
		Pending: requests.Rows, Steps: steps, Minutes: minutes,
		Running: pageTurns(f.RunningCount, f.Running), Queued: pageTurns(f.QueuedCount, f.Queued), Now: f.Now,
		Waiting: pages.WaitingLine{Rows: f.Inbound.Rows, Chat: f.Inbound.ChatJID, Since: f.Inbound.Since},
		Unsent:  pages.WaitingLine{Rows: f.Outbound.Rows, Chat: f.Outbound.ChatJID, Since: f.Outbound.Since},
	}
	for _, line := range f.Daemons {
		if line.Name == "routd" && line.Detail != "" {
			shown.Routes, line.Detail = strings.Split(line.Detail, "\n"), "" // as routd reports its table
		}
		shown.Daemons = append(shown.Daemons, pages.DaemonLine{
			Name: line.Name, Connection: connectionWords(line, f.Now), Detail: line.Detail, Version: line.Version,
			OK: line.OK, HeartbeatAt: line.HeartbeatAt, LastEventAt: line.LastEventAt, LastProbeAt: line.LastProbeAt,
		})
	}
	for i := range f.Machines {
		shown.Machines = append(shown.Machines, machineLine(&f.Machines[i]))
	}
	return shown, nil
}

// connectionWords says of a daemon without a platform that it runs: there is nothing that it is connected to. What one
// has reported that hangs or was killed says nothing about it.
func connectionWords(d status.Daemon, now int64) string {
	stored := daemonrows.Daemon{Name: d.Name, Connection: string(d.Connection), HeartbeatAt: d.HeartbeatAt}
	row := facts.Daemon{Daemon: stored}
	switch {
	case row.Silent(now), !d.OK && d.Connection == daemon.Connected:
		return "not answering"
	case d.Connection == daemon.Connected && slices.Contains(daemon.Core(), d.Name):
		return "running"
	}
	return string(d.Connection)
}

func machineLine(p *status.Process) pages.MachineLine {
	does := "stands by"
	switch {
	case p.Daemon == "gated" && p.Works:
		does = "decides, runs agents"
	case p.Daemon == "gated":
		does = "runs agents"
	case p.Works:
		does = "works"
	}
	return pages.MachineLine{
		Daemon: p.Daemon, Does: does, Place: p.Place, Addr: p.Addr, Version: p.Version, Note: p.Note, Bad: p.Bad,
		Since: p.Since, Quiet: p.Quiet, Left: p.Left,
	}
}

func pageTurns(count int, listed []*msg.Turn) pages.Turns {
	lines := make([]pages.TurnLine, len(listed))
	for i, t := range listed {
		lines[i] = pages.TurnLine{
			ID: t.ID, Folder: t.Folder, Chat: t.ChatJID, Topic: t.Topic, State: string(t.State),
			Since: since(t), Attempts: t.Attempts, Error: t.Error,
		}
	}
	return pages.Turns{Count: count, Lines: lines}
}

func since(t *msg.Turn) int64 {
	if t.State == msg.TurnQueued { // also after a requeue
		return t.CreatedAt
	}
	return cmp.Or(t.StartedAt, t.CreatedAt)
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

func (m *minutes) read(ctx context.Context, c *Console) (pages.Minutes, error) {
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
	read := pages.Minutes{Partly: !all}
	for _, c := range counted {
		read.In, read.Out = append(read.In, c.In), append(read.Out, c.Out)
	}
	m.at, m.last = now, read
	return read, nil
}
