package doctor

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"arizuko/pkg/daemon"
	"arizuko/pkg/facts"
	"arizuko/pkg/store"
)

// checkDaemons checks which daemons run, and how they are.
func checkDaemons(ctx context.Context, e *examination) {
	e.locks = readLocks(e.Proc, e.Base, e.in.Daemons)
	checkLockHolders(e)
	if e.self == "" && !anyRuns(e) {
		reportNothingRuns(e)
		return
	}
	for _, name := range e.expected() {
		switch row := e.in.Daemons[name]; {
		case name == e.self:
		case e.alive(name):
			if problem := socketProblem(ctx, e.Base, name); problem != "" {
				e.Problem("socket-missing",
					"pokes do not reach "+name+", which finds new rows by polling only: "+problem, "restart "+name).
					About(name).Restarts(name)
			}
			e.Add(row.Platform(e.now)...)
		case row != nil || e.answers.of(name).status == 0:
			reportGone(e, name)
		}
	}
	e.in.Daemons.Versions(e.now, &e.List)
	checkOldSecret(e)
}

// checkOldSecret finds daemons that run with a former secret: they read the file when they start.
func checkOldSecret(e *examination) {
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
			strings.Join(names, ", "), "restart them").Restarts(names...)
	}
}

// expected are the daemons that should run, sorted: the core, those that have run, and adapters with a token.
func (e *examination) expected() []string {
	names := slices.AppendSeq(daemon.Core(), maps.Keys(e.in.Daemons))
	names = append(names, e.env.configured()...)
	slices.Sort(names)
	return slices.Compact(names)
}

// alive reports whether a daemon has a recent heartbeat.
func (e *examination) alive(name string) bool { return e.in.Daemons.Runs(name, e.now) }

func anyRuns(e *examination) bool {
	for name := range e.in.Daemons {
		if e.alive(name) || e.locks.daemon(name) != 0 {
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

func reportNothingRuns(e *examination) {
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

// reportGone reports a daemon without a recent heartbeat.
func reportGone(e *examination, name string) {
	row := e.in.Daemons[name]
	pid := e.locks.daemon(name)
	switch {
	case pid != 0 && e.Has("writelock-stopped"), (pid != 0 || e.answers.of(name).status != 0) &&
		e.Has("database-locked"):
		return // it waits for the lock
	case pid != 0 && row != nil:
		e.Problem("daemon-hangs", fmt.Sprintf("%s (process %d) runs but has written nothing for %s", name, pid,
			facts.Span(e.now-row.HeartbeatAt)),
			fmt.Sprintf("restart it: nothing is lost. If it was stopped on purpose, kill -CONT %d continues it", pid)).
			About(name).Restarts(name)
		return
	}
	f := e.Problem("daemon-gone", name+" "+row.Trouble(e.now), e.in.Daemons.Start(name)).About(name)
	if row != nil && row.State() == daemon.Stopped && !slices.Contains(daemon.Core(), name) && !e.env.hasToken(name) {
		f.Level = facts.Warning // on purpose, perhaps
	}
}

// checkLockHolders finds the process that keeps all daemons from writing.
func checkLockHolders(e *examination) {
	if pid := e.locks.holder[e.locks.writeLock()]; pid != 0 && e.locks.stopped(pid) {
		e.Problem("writelock-stopped",
			fmt.Sprintf("process %d holds the write lock and is stopped: no daemon can write", pid),
			fmt.Sprintf("kill -CONT %d, or kill -9 %[1]d: nothing is lost", pid))
		return
	}
	said := e.answers.saying(store.ErrLocked.Error()) != nil
	pid := e.locks.holder[e.locks.sharedMemory()]
	switch {
	case e.Base.DB != "":
	case pid != 0 && (said || noneWrites(e)):
		end := fmt.Sprintf("end its transaction, or the program: kill %d", pid)
		if e.locks.stopped(pid) {
			end = fmt.Sprintf("it is stopped: kill -CONT %d, or kill -9 %[1]d", pid)
		}
		e.Problem("database-locked",
			fmt.Sprintf("process %d%s holds the write lock of the database: no daemon can write", pid,
				e.locks.command(pid)),
			end+"; the daemons go on by themselves, nothing is lost")
	case said:
		e.Problem("database-locked",
			"a process that this machine does not show holds the write lock of the database: no daemon can write",
			"run this on the machine itself, not in a container, or look with `fuser -v "+e.locks.sharedMemory()+
				"`; end what holds it: the daemons go on by themselves, nothing is lost")
	}
}

// noneWrites reports whether daemons run, and none of them has written its heartbeat lately.
func noneWrites(e *examination) bool {
	runs := false
	for name := range e.in.Daemons {
		if e.alive(name) {
			return false
		}
		runs = runs || e.locks.daemon(name) != 0
	}
	return runs
}
