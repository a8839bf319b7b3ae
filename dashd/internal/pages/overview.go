package pages

import (
	"fmt"

	"arizuko/pkg/facts"
)

// Overview is the state of the instance. Times are unix ms, 0 for never.
type Overview struct {
	Daemons  []DaemonLine
	Machines []MachineLine // the processes of an instance that has several machines
	// what routd says about routes and groups: rows that match nothing, groups that strangers reach
	Routes  []string
	Running Turns
	Queued  Turns
	Waiting WaitingLine // inbound rows that are not decided
	Unsent  WaitingLine // outbound rows that are not delivered
	Pending int         // requests of chats that wait for an operator
	Steps   *Steps      // nil once a chat of a platform is connected
	// Attention is what is wrong, problems first; Unlisted is how much more there is.
	Attention []facts.Fact
	Unlisted  int
	Minutes   Minutes
	Now       int64
}

// DaemonLine is one daemon. Connection is the state of its platform, Detail its problem.
type DaemonLine struct {
	Name, Connection, Detail, Version string
	OK                                bool
	HeartbeatAt                       int64
	LastEventAt, LastProbeAt          int64
}

// MachineLine is a process of an instance that has several machines. Does says what it does of what its daemon does;
// Quiet and Left are ms, by the database's clock: since it renewed its lease, and until that ends.
type MachineLine struct {
	Daemon, Does, Place, Addr, Version, Note string
	Bad                                      bool
	Since                                    int64
	Quiet, Left                              int64
}

// lateRenewal, in ms, is above the 3 s after which a process renews its lease, and the time that the page may be old.
const lateRenewal = 6_000

// Lease words how the process's lease is.
func (m MachineLine) Lease() string {
	switch {
	case m.Left <= 0:
		return "ended " + duration(-m.Left) + " ago"
	case m.Quiet >= lateRenewal:
		return "not renewed for " + duration(m.Quiet)
	}
	return "renewed"
}

// Turns are counted; the oldest are listed.
type Turns struct {
	Count int
	Lines []TurnLine
}

// TurnLine is one turn that has not ended. Since is when its run started, or when it was first
// queued if none runs.
type TurnLine struct {
	ID                         int64
	Folder, Chat, Topic, State string
	Since                      int64
	Attempts                   int
	Error                      string
}

// WaitingLine counts waiting rows; Chat and Since are those of the oldest.
type WaitingLine struct {
	Rows  int
	Chat  string
	Since int64
}

// Down returns how many daemons are not healthy.
func (o Overview) Down() (n int) {
	for _, d := range o.Daemons {
		if !d.OK {
			n++
		}
	}
	return n
}

// turnTable is a list of turns with its title, made by a template.
type turnTable struct {
	ID, Title, Empty string
	Turns            Turns
	Now              int64
}

// More returns how many turns are not listed.
func (t turnTable) More() int { return t.Turns.Count - len(t.Turns.Lines) }

func newTurnTable(id, title, empty string, all Turns, now int64) turnTable {
	return turnTable{id, title, empty, all, now}
}

// Minutes are the messages of each minute, the oldest first; the last minute is not over.
type Minutes struct {
	In, Out []int
	Partly  bool // there were more
}

// Bar is one minute in the chart, in the units of its view box.
type Bar struct{ X, InY, InHeight, OutY, OutHeight int }

// The view box of the chart.
const (
	barWidth    = 10
	chartHeight = 80
)

// Width of the view box.
func (m Minutes) Width() int { return barWidth * len(m.In) }

// Height of the view box.
func (m Minutes) Height() int { return chartHeight }

// Most is the most messages of a minute.
func (m Minutes) Most() (most int) {
	for i := range m.In {
		most = max(most, m.In[i]+m.Out[i])
	}
	return most
}

// Bars are those of the chart: what came in below, what went out above it.
func (m Minutes) Bars() (all []Bar) {
	most := m.Most()
	if most == 0 {
		return nil
	}
	for i := range m.In {
		height := func(n int) int { return (n*chartHeight + most - 1) / most }
		b := Bar{X: i * barWidth, InHeight: height(m.In[i]), OutHeight: height(m.In[i]+m.Out[i]) - height(m.In[i])}
		b.InY = chartHeight - b.InHeight
		b.OutY = b.InY - b.OutHeight
		if m.In[i]+m.Out[i] > 0 {
			all = append(all, b)
		}
	}
	return all
}

// Words say what the chart shows.
func (m Minutes) Words() string {
	in, out := 0, 0
	for i := range m.In {
		in, out = in+m.In[i], out+m.Out[i]
	}
	if in+out == 0 {
		return "No message in the last hour."
	}
	least := ""
	if m.Partly {
		least = "at least "
	}
	return fmt.Sprintf("In the last hour %s%d came in and %d went out, at most %d a minute.", least, in, out, m.Most())
}
