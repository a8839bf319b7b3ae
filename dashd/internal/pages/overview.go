package pages

import (
	"fmt"
	"strings"
)

// Overview is the state of the instance. Times are unix ms, 0 for never.
type Overview struct {
	Daemons []DaemonLine
	Routes  []string // what routd says about routes and groups: rows that match nothing, groups that strangers reach
	Running Turns
	Queued  Turns
	Waiting WaitingLine // inbound rows that are not decided
	Unsent  WaitingLine // outbound rows that are not delivered
	Pending int         // requests of chats that wait for an operator
	Steps   *Steps      // nil once a chat of a platform is connected
	Now     int64
}

// DaemonLine is one daemon. Connection is the state of its platform, Detail its problem.
type DaemonLine struct {
	Name, Connection, Detail, Version string
	OK                                bool
	HeartbeatAt                       int64
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

// OverviewFragment renders what changes on the overview page.
func (p *Pages) OverviewFragment(facts Overview) (string, error) {
	var b strings.Builder
	if err := p.templates.ExecuteTemplate(&b, "facts.html", facts); err != nil {
		return "", fmt.Errorf("render the overview: %w", err)
	}
	return b.String(), nil
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
