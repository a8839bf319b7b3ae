package facts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxHeartbeatAge is the age of a heartbeat from which its daemon counts as gone.
	maxHeartbeatAge = 3 * daemon.HeartbeatInterval
	// maxConnecting is how long a first connection to a platform may take.
	maxConnecting = time.Minute
)

// Daemon is the row of a daemon. A nil one has never run.
type Daemon struct {
	daemonrows.Daemon
	Processes []daemonrows.Process // those of several machines that share the database; none if it is a file

	// Set by Ask.
	unready string // why it is not ready
	hangs   bool   // it does not answer, and its process holds its lock
}

// Daemons are those that have run, by name.
type Daemons map[string]*Daemon

// ReadDaemons reads all daemons.
func ReadDaemons(ctx context.Context, st store.Reader) (Daemons, error) {
	rows, err := daemonrows.Daemons(ctx, st)
	if err != nil {
		return nil, err
	}
	all := make(Daemons, len(rows))
	for _, row := range rows {
		all[row.Name] = &Daemon{Daemon: row}
	}
	processes, err := daemonrows.Processes(ctx, st)
	for _, p := range processes {
		if d := all[p.Daemon]; d != nil {
			d.Processes = append(d.Processes, p)
		}
	}
	return all, err
}

// Ask asks the daemons that run on this data folder how they are: rows are old where a daemon cannot write. It returns
// all.
func (all Daemons) Ask(ctx context.Context, base config.Base, now int64) Daemons {
	var group sync.WaitGroup
	for name, d := range all {
		if d.State() == daemon.Stopped {
			continue
		}
		group.Go(func() {
			var err error
			if d.unready, err = daemon.Unready(ctx, base, name); err != nil && d.Silent(now) {
				d.hangs = daemon.Running(base, name)
			}
			if strings.Contains(d.unready, " stands by") {
				d.unready = "" // it works on another machine
			}
		})
	}
	group.Wait()
	return all
}

// Runs reports whether a daemon runs, whatever the state of its platform is, at the time now in unix ms.
func (all Daemons) Runs(name string, now int64) bool {
	d := all[name]
	return d != nil && d.State() != daemon.Stopped && !d.Silent(now)
}

// Missing is the first of the named daemons that does not run, with its trouble; "" if all run.
func (all Daemons) Missing(now int64, names ...string) (name, trouble string) {
	for _, name := range names {
		if down := all[name].down(now); down != "" {
			return name, name + " " + down
		}
	}
	return "", ""
}

// Unsent says why a message to a chat is still queued, at the time now in unix ms.
func (all Daemons) Unsent(chatJID string, now int64) string {
	name := msg.DaemonOf(chatJID)
	trouble := all[name].Trouble(now)
	switch {
	case name == "":
		return "the program that serves its platform has not taken it"
	case trouble != "":
		return name + " " + trouble
	case msg.FamilyOf(chatJID) == "telegram":
		return name + " sends what is for a chat one after the other, as fast as Telegram takes it: " +
			"about 20 messages a minute in a group"
	}
	return name + " sends what is for a chat one after the other, as fast as its platform takes it"
}

// Silent reports whether the daemon has ended without reporting that.
func (d *Daemon) Silent(now int64) bool {
	return d.State() != daemon.Stopped && now-d.HeartbeatAt >= maxHeartbeatAge.Milliseconds()
}

// others are the problems of the processes that do not have the daemon's lease: of gated, each runs agents.
func (d *Daemon) others() (notes []string) {
	for _, p := range d.Processes {
		note := "on " + p.Place + ": " + p.Detail
		if p.Holds == "" && daemon.Connection(p.Connection) == daemon.Degraded && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// State is the state of its connection: degraded, too, if another process of it is.
func (d *Daemon) State() daemon.Connection {
	if c := daemon.Connection(d.Connection); c != daemon.Connected || d.others() == nil {
		return c
	}
	return daemon.Degraded
}

// details are the reports of its processes, for operators.
func (d *Daemon) details() []string {
	others := d.others()
	if d.Detail == "" || others != nil && daemon.Connection(d.Connection) == daemon.Connected {
		return others
	}
	return append([]string{d.Detail}, others...)
}

// Details are the reports of its processes on one line, for operators.
func (d *Daemon) Details() string { return strings.Join(d.details(), "; ") }

// Trouble continues a sentence that begins with the daemon's name, "" if it is healthy. Anyone may read it: it has no
// detail.
func (d *Daemon) Trouble(now int64) string {
	if down := d.down(now); down != "" {
		return down
	}
	switch c := d.State(); {
	case c == daemon.BadCredentials:
		return refusedWords + "its platform refuses the credentials"
	case c == daemon.Degraded && d.Name == gated:
		return "cannot answer some messages: the dashboard says why"
	case c == daemon.Degraded:
		return degradedWords
	case c != daemon.Connected:
		return "is still connecting"
	}
	return ""
}

// down is the part of Trouble that keeps it from doing anything.
func (d *Daemon) down(now int64) string {
	switch {
	case d == nil:
		return "has never run with this data folder"
	case d.State() == daemon.Stopped:
		return "was stopped " + Ago(now, d.HeartbeatAt)
	case d.unready != "":
		return NotReady + d.unready
	case d.hangs:
		return "runs, but has not answered for " + Span(now-d.HeartbeatAt)
	case d.Silent(now):
		return Silent + Ago(now, d.HeartbeatAt)
	}
	return ""
}

// wait is the remedy for a daemon that runs and does not work, "" for others.
func (d *Daemon) wait() string {
	switch {
	case d != nil && d.unready != "":
		return "it goes on by itself once that is repaired"
	case d != nil && d.hangs:
		return "look at its log, and kill its process: it is started again, and nothing is lost"
	}
	return ""
}

// again says how to make a daemon go on.
func (all Daemons) again(name string) string {
	return cmp.Or(all[name].wait(), "start "+name+": it continues where it stopped")
}

// NotReady begins the trouble of a daemon that says itself why it does not work, Silent that of one that has ended
// without reporting it.
const (
	NotReady = "is not ready: "
	Silent   = "does not run: its last heartbeat was "
)

const (
	gated         = "gated"
	refusedWords  = "cannot log in: "
	degradedWords = "has a bad connection to its platform"
)

// Start says how to start a daemon that has ended. On several machines it names the process to look at.
func (all Daemons) Start(name string) string {
	if fix := all[name].wait(); fix != "" {
		return fix
	}
	var own []daemonrows.Process
	var on, elsewhere []string // places
	for _, d := range all {
		for _, p := range d.Processes {
			elsewhere = append(elsewhere, p.Place)
			if p.Daemon == name {
				own, on = append(own, p), append(on, p.Place)
			}
		}
	}
	switch holder := slices.IndexFunc(own, func(p daemonrows.Process) bool { return p.Holds != "" }); {
	case elsewhere == nil:
		unit := strings.ReplaceAll(name, "+", "-")
		return fmt.Sprintf("start it: `make run`, `docker compose up -d %[1]s`, or `systemctl start arizuko@%[1]s`; "+
			"then look at its log", unit)
	case own == nil:
		return "start it on one of the machines that others run on: " + places(elsewhere)
	case holder < 0:
		return "no process has its lease; those on " + places(on) + " should take it within seconds: look at their logs"
	case own[holder].Until > own[holder].Now:
		return "its process on " + own[holder].Place + " renews its lease and reports nothing: look at its log"
	default:
		return fmt.Sprintf("the lease of its process on %s ended %s, and no other took over: look at its log there, "+
			"or start %s on another machine",
			own[holder].Place, Ago(own[holder].Now, own[holder].Until), name)
	}
}

func places(all []string) string {
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// Platform are the facts about a daemon that runs and its platform.
func (d *Daemon) Platform(now int64) []Fact {
	var l List
	if ahead := d.HeartbeatAt - now; ahead > maxAhead.Milliseconds() {
		text := fmt.Sprintf("%s's heartbeat is %s in the future", d.Name, Span(ahead))
		l.Problem("clock-heartbeat", text, clockFix).About(d.Name)
	}
	program, account := msg.SplitAccount(d.Name)
	isAdapter := slices.ContainsFunc(daemon.Adapters(), func(a daemon.Adapter) bool { return a.Name == program })
	detail := "its log says why"
	if d.Details() != "" {
		detail = strings.ReplaceAll(d.Details(), "\n", "; ")
	}
	switch state := d.State(); {
	case state == daemon.BadCredentials:
		f := l.Problem("credentials", d.Name+" "+refusedWords+detail, credentialsFix(d.Name)).About(d.Name)
		if isAdapter && account == "" {
			f.on("/connect/"+program, "Connect", "try the current token there, and set it on the server")
		}
	case state == daemon.Degraded && d.Name == gated:
		d.noAgents(&l)
	case state == daemon.Degraded:
		kind, fix := connectionFix(d.Name, detail)
		l.Problem(kind, d.Name+" "+degradedWords+": "+detail, fix).About(d.Name)
	case state == daemon.Connected && d.Detail != "" && isAdapter:
		f := l.Problem("competing", d.Name+" is not alone: "+detail,
			"one token, one program: look for an old container, another instance or a test that has this token "+
				"and stop it, or give this instance an app or bot of its own").About(d.Name)
		if program == "discd" { // Discord sends every event to each
			f.Level = Warning
		}
	case state == daemon.Connecting && d.StartedAt < now-maxConnecting.Milliseconds():
		l.Problem("connecting", fmt.Sprintf("%s started %s and has not connected to its platform yet", d.Name,
			Ago(now, d.StartedAt)),
			"run "+CheckCommand(d.Name)+" in its environment: it says whether the platform can be reached").
			About(d.Name)
	}
	return l.Found
}

// CheckCommand is the command that checks a daemon in its environment.
func CheckCommand(name string) string {
	program, account := msg.SplitAccount(name)
	if account == "" {
		return "`" + program + " check`"
	}
	return fmt.Sprintf("`%s_ACCOUNT=%s %s check`", strings.ToUpper(program), account, program)
}

func credentialsFix(name string) string {
	variable := daemon.TokenVariable(name)
	if variable == "" {
		variable = "its token"
	}
	return fmt.Sprintf("set %s to the current token, run %s, and restart %s", variable, CheckCommand(name), name)
}

// connectionFix returns the kind of a bad connection, and the remedy, from the report of the adapter.
func connectionFix(name, detail string) (kind, fix string) {
	switch {
	case strings.Contains(detail, "webhook is set"):
		return "webhook", "remove the webhook: open <TELEGRAM_API_URL>/bot<token>/deleteWebhook once; " +
			"teled connects within half a minute"
	case strings.Contains(detail, "another program reads"):
		return "poller", "one token, one poller: stop the other program or instance that uses this token, " +
			"or give this one a bot of its own"
	}
	return "connection", "run " + CheckCommand(name) +
		" in its environment, and look at its log; it reconnects by itself"
}

// NoAgents says since when a runtime can start no agent, in unix ms.
func NoAgents(runtime, reason string, since int64) string {
	return fmt.Sprintf("no agent can be started as %s since %s, messages wait: %s", runtime,
		time.UnixMilli(since).Format(time.DateTime), reason)
}

// GroupFails says that a group's turns fail alike. gated reports it after all of NoAgents.
func GroupFails(folder, reason string) string {
	return fmt.Sprintf("%s%s fail alike, one a minute is tried: %s", groupWords, folder, reason)
}

const groupWords = "turns of group "

// noAgents adds the reasons why agents cannot be started. Groups that fail have facts of their own.
func (d *Daemon) noAgents(l *List) {
	for _, detail := range d.details() {
		detail, _, _ = strings.Cut(detail, groupWords)
		if detail = strings.TrimSuffix(detail, "; "); detail != "" && !strings.HasSuffix(detail, ": ") {
			l.Problem("agents", detail, "run `gated check` in gated's environment; gated tries again every 30 s")
		}
	}
}

// Versions adds that the daemons that run have different versions.
func (all Daemons) Versions(now int64, l *List) {
	by := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all.Runs(name, now) {
			by[all[name].Version] = append(by[all[name].Version], name)
		}
	}
	if len(by) < 2 {
		return
	}
	var lines []string
	for _, version := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, version+": "+strings.Join(by[version], ", "))
	}
	l.Warn("versions", "the daemons have different versions ("+strings.Join(lines, "; ")+")",
		"restart those of the older version with the new programs")
}
