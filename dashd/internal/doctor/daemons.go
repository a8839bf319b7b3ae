package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/facts"
	"arizuko/pkg/store"
)

// daemons checks which daemons run, and how they are.
func (e *examination) daemons() {
	var paths []string
	for name := range e.in.Daemons {
		paths = append(paths, e.lockPath(name))
	}
	e.locks = e.readLocks(paths)
	e.lockHolders()
	if e.self == "" && !e.anyRuns() {
		e.nothingRuns()
		return
	}
	for _, name := range e.expected() {
		switch row := e.in.Daemons[name]; {
		case name == e.self:
		case e.alive(name):
			e.poked(name)
			e.Add(row.Platform(e.now)...)
		case row != nil || e.answers[name].status == 0:
			e.gone(name)
		}
	}
	e.in.Daemons.Versions(e.now, &e.List)
	e.oldSecret()
	if left := e.leftSockets(e.expected()); len(left) > 0 {
		e.Warn("socket-left", "left by a process that has ended: "+strings.Join(left, ", "),
			"remove it, unless you start that adapter again")
	}
}

// oldSecret finds daemons that run with a former secret: they read the file when they start.
func (e *examination) oldSecret() {
	info, err := os.Stat(e.Base.SecretPath())
	if err != nil || e.Base.SharedSecret != "" {
		return
	}
	var names []string
	for _, name := range e.expected() {
		if d := e.in.Daemons[name]; e.alive(name) && d.Processes == nil && d.StartedAt < info.ModTime().UnixMilli() {
			names = append(names, name)
		}
	}
	if names != nil {
		e.Problem("secret-changed", "the secret was changed after these started, which use the former one: "+
			strings.Join(names, ", "), "restart them")
	}
}

// expected are the daemons that should run, sorted: the core, those that have run, and adapters with a token.
func (e *examination) expected() []string {
	names := slices.AppendSeq(daemon.Core(), maps.Keys(e.in.Daemons))
	names = append(names, e.configured()...)
	slices.Sort(names)
	return slices.Compact(names)
}

// configured are the adapters whose token is in this environment, and those of further accounts.
func (e *examination) configured() (names []string) {
	for _, a := range daemon.Adapters() {
		if e.env.hasToken(a.Name) {
			names = append(names, a.Name)
		}
	}
	for i := range e.env.accounts {
		names = append(names, e.env.accounts[i].Daemon)
	}
	return names
}

// alive reports whether a daemon has a recent heartbeat.
func (e *examination) alive(name string) bool { return e.in.Daemons.Runs(name, e.now) }

func (e *examination) anyRuns() bool {
	for name := range e.in.Daemons {
		if e.alive(name) || e.locks.holder[e.lockPath(name)] != 0 {
			return true
		}
	}
	for _, a := range e.answers {
		if a.status != 0 {
			return true
		}
	}
	return false
}

func (e *examination) nothingRuns() {
	last := int64(0)
	for _, row := range e.in.Daemons {
		last = max(last, row.HeartbeatAt)
	}
	text := "no daemon runs, and none has run with this data folder"
	if last > 0 {
		text = "no daemon runs: the last one reported " + facts.Ago(e.now, last)
	}
	e.Problem("nothing-runs", text,
		"start it: `make run`, `docker compose up -d`, or `systemctl start arizuko.target`; then look at the logs")
}

// gone reports a daemon without a recent heartbeat.
func (e *examination) gone(name string) {
	row := e.in.Daemons[name]
	pid := e.locks.holder[e.lockPath(name)]
	switch {
	case pid != 0 && e.Has("writelock-stopped"), (pid != 0 || e.answers[name].status != 0) && e.Has("database-locked"):
		return // it waits for the lock
	case pid != 0 && row != nil:
		e.Problem("daemon-hangs", fmt.Sprintf("%s (process %d) runs but has written nothing for %s", name, pid,
			facts.Span(e.now-row.HeartbeatAt)),
			fmt.Sprintf("look at its log; if it is stopped (state T in `ps`), kill -CONT %d; else kill it: nothing is lost", pid))
		return
	}
	f := e.Problem("daemon-gone", name+" "+row.Trouble(e.now), e.in.Daemons.Start(name))
	if row != nil && row.State() == daemon.Stopped && !slices.Contains(daemon.Core(), name) && !e.env.hasToken(name) {
		f.Level = facts.Warning // on purpose, perhaps
	}
}

// poked checks whether pokes reach a daemon that runs.
func (e *examination) poked(name string) {
	if problem := e.socketProblem(name); problem != "" {
		e.Problem("socket-missing", "pokes do not reach "+name+", which finds new rows by polling only: "+problem,
			"restart "+name)
	}
}

const (
	botAge  = 7 * 24 * time.Hour // how long the change of a bot is reported
	maxBots = 3
)

// bots finds adapters that changed to another bot.
func (e *examination) bots(ctx context.Context) error {
	changes, err := e.st.Audit(ctx, store.AuditQuery{What: store.AuditBot, Limit: maxBots})
	for _, c := range changes {
		if c.At > e.now-botAge.Milliseconds() {
			e.Warn("bot-changed",
				fmt.Sprintf("%s changed to another bot %s (%s): messages of the former one in private chats and basic groups can no longer be changed", c.Who, facts.Ago(e.now, c.At), c.Detail),
				fmt.Sprintf("nothing, if that was meant; else set %s to the former bot's token and restart %s",
					cmp.Or(daemon.TokenVariable(c.Who), "its token"), c.Who))
		}
	}
	return err
}
