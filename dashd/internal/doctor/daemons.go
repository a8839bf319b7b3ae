package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxHeartbeatAge is the age of a heartbeat from which its daemon counts as gone.
	maxHeartbeatAge = 3 * daemon.HeartbeatInterval
	// maxConnecting is how long a first connection to a platform may take.
	maxConnecting = time.Minute
)

// daemons checks which daemons run, and how they are.
func (e *examination) daemons(ctx context.Context) error {
	all, err := e.st.Daemons(ctx)
	if err != nil {
		return err
	}
	e.rows = map[string]store.Daemon{}
	var paths []string
	for _, d := range all {
		e.rows[d.Name] = d
		paths = append(paths, e.lockPath(d.Name))
	}
	e.locks = e.readLocks(paths)
	e.lockHolders()
	if !e.anyRuns() {
		e.nothingRuns()
		return nil
	}
	for _, name := range e.expected() {
		switch row, known := e.rows[name]; {
		case name == e.self:
		case e.alive(name):
			e.connection(row)
		case known || e.answers[name].status == 0:
			e.gone(name)
		}
	}
	e.versions()
	if left := e.leftSockets(e.known()); len(left) > 0 {
		e.warn("socket-left", "left by a process that has ended: "+strings.Join(left, ", "), "remove it, unless you start that adapter again")
	}
	return nil
}

// known are the daemons whose sockets are looked at with them.
func (e *examination) known() map[string]bool {
	known := map[string]bool{}
	for _, name := range e.expected() {
		known[name] = true
	}
	return known
}

// expected are the daemons that should run, sorted: the core, those that have run, and adapters with a token.
func (e *examination) expected() []string {
	names := slices.AppendSeq(daemon.Core(), maps.Keys(e.rows))
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

// checkOf is the command that checks a daemon in its environment.
func checkOf(name string) string {
	program, account := msg.SplitAccount(name)
	if account == "" {
		return "`" + program + " check`"
	}
	return fmt.Sprintf("`%s_ACCOUNT=%s %s check`", strings.ToUpper(program), account, program)
}

// alive reports whether a daemon has a recent heartbeat.
func (e *examination) alive(name string) bool {
	row, known := e.rows[name]
	return known && daemon.Connection(row.Connection) != daemon.Stopped && row.HeartbeatAt > e.before(maxHeartbeatAge)
}

func (e *examination) anyRuns() bool {
	for name := range e.rows {
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
	for _, row := range e.rows {
		last = max(last, row.HeartbeatAt)
	}
	text := "no daemon runs, and none has run with this data folder"
	if last > 0 {
		text = "no daemon runs: the last one reported " + e.ago(last)
	}
	e.problem("nothing-runs", text, "start it: `make run`, `docker compose up -d`, or `systemctl start arizuko.target`; then look at the logs")
}

// gone reports a daemon without a recent heartbeat.
func (e *examination) gone(name string) {
	row, known := e.rows[name]
	pid := e.locks.holder[e.lockPath(name)]
	level, text := Problem, name+" does not run: its last heartbeat was "+e.ago(row.HeartbeatAt)
	switch {
	case pid != 0 && e.has("writelock-stopped"), (pid != 0 || e.answers[name].status != 0) && e.has("database-locked"):
		return // it waits for the lock
	case pid != 0:
		e.problem("daemon-hangs", fmt.Sprintf("%s (process %d) runs but has written nothing for %s", name, pid, span(e.now-row.HeartbeatAt)),
			fmt.Sprintf("look at its log; if it is stopped (state T in `ps`), kill -CONT %d; else kill it: nothing is lost", pid))
		return
	case !known:
		text = name + " has never run with this data folder"
	case daemon.Connection(row.Connection) == daemon.Stopped:
		text = name + " was stopped " + e.ago(row.HeartbeatAt)
		if !slices.Contains(daemon.Core(), name) && !e.env.hasToken(name) {
			level = Warning // on purpose, perhaps
		}
	}
	e.add(level, "daemon-gone", text, fmt.Sprintf("start it: `make run`, `docker compose up -d %[1]s`, or `systemctl start arizuko@%[1]s`; then look at its log", strings.ReplaceAll(name, "+", "-")))
}

// connection checks a daemon that runs.
func (e *examination) connection(row store.Daemon) {
	if ahead := row.HeartbeatAt - e.now; ahead > maxAhead.Milliseconds() {
		e.problem("clock-heartbeat", fmt.Sprintf("%s's heartbeat is %s in the future", row.Name, span(ahead)), clockFix)
	}
	if problem := e.socketProblem(row.Name); problem != "" {
		e.problem("socket-missing", "pokes do not reach "+row.Name+", which finds new rows by polling only: "+problem, "restart "+row.Name)
	}
	switch state := daemon.Connection(row.Connection); {
	case state == daemon.BadCredentials:
		e.problem("credentials", row.Name+" cannot log in: "+orUnknown(row.Detail), credentialsFix(row.Name))
	case state == daemon.Degraded && row.Name == "gated":
		e.gatedDegraded(row.Detail)
	case state == daemon.Degraded:
		id, fix := connectionFix(row.Name, row.Detail)
		e.problem(id, row.Name+" has no working connection to its platform: "+orUnknown(row.Detail), fix)
	case state == daemon.Connected && row.Detail != "" && isAdapter(row.Name):
		e.competing(row)
	case state == daemon.Connecting && row.StartedAt < e.before(maxConnecting):
		e.problem("connecting", fmt.Sprintf("%s started %s and has not connected to its platform yet", row.Name, e.ago(row.StartedAt)),
			"run "+checkOf(row.Name)+" in its environment: it says whether the platform can be reached")
	}
}

func isAdapter(name string) bool {
	program, _ := msg.SplitAccount(name)
	return slices.ContainsFunc(daemon.Adapters(), func(a daemon.Adapter) bool { return a.Name == program })
}

// competing reports a program that receives events of an adapter's account. Discord sends every event to each.
func (e *examination) competing(row store.Daemon) {
	level := Problem
	if program, _ := msg.SplitAccount(row.Name); program == "discd" {
		level = Warning
	}
	e.add(level, "competing", row.Name+" is not alone: "+orUnknown(row.Detail),
		"one token, one program: look for an old container, another instance or a test that has this token and stop it, or give this instance an app or bot of its own")
}

func orUnknown(detail string) string {
	if detail == "" {
		return "its log says why"
	}
	return strings.ReplaceAll(detail, "\n", "; ")
}

func credentialsFix(name string) string {
	variable := daemon.TokenVariable(name)
	if variable == "" {
		variable = "its token"
	}
	return fmt.Sprintf("set %s to the current token, run %s, and restart %s", variable, checkOf(name), name)
}

// connectionFix returns the kind of a bad connection, and the remedy, from what the adapter reports.
func connectionFix(name, detail string) (id, fix string) {
	switch {
	case strings.Contains(detail, "webhook is set"):
		return "webhook", "remove the webhook: open <TELEGRAM_API_URL>/bot<token>/deleteWebhook once; teled connects within half a minute"
	case strings.Contains(detail, "another program reads"):
		return "poller", "one token, one poller: stop the other program or instance that uses this token, or give this one a bot of its own"
	}
	return "connection", "run " + checkOf(name) + " in its environment, and look at its log; it reconnects by itself"
}

// gatedDegraded reports what keeps agents from being started. Groups that fail have findings of their own.
func (e *examination) gatedDegraded(detail string) {
	detail, _, _ = strings.Cut(detail, "turns of group ")
	if detail = strings.TrimSuffix(detail, "; "); detail != "" {
		e.problem("agents", detail, "run `gated check` in gated's environment; gated tries again every 30 s")
	}
}

// versions finds daemons of different versions.
func (e *examination) versions() {
	by := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(e.rows)) {
		if e.alive(name) {
			by[e.rows[name].Version] = append(by[e.rows[name].Version], name)
		}
	}
	if len(by) < 2 {
		return
	}
	var lines []string
	for _, version := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, version+": "+strings.Join(by[version], ", "))
	}
	e.warn("versions", "the daemons have different versions ("+strings.Join(lines, "; ")+")", "restart those of the older version with the new programs")
}

// botAge is how long the change of a bot is reported.
const botAge = 7 * 24 * time.Hour

// bots finds adapters that changed to another bot.
func (e *examination) bots(ctx context.Context) error {
	changes, err := e.st.Audit(ctx, store.AuditQuery{What: store.AuditBot, Limit: maxNamed})
	for _, c := range changes {
		if c.At > e.before(botAge) {
			e.warn("bot-changed", fmt.Sprintf("%s changed to another bot %s (%s): messages of the former one in private chats and basic groups can no longer be changed", c.Who, e.ago(c.At), c.Detail),
				fmt.Sprintf("nothing, if that was meant; else set %s to the former bot's token and restart %s", cmp.Or(daemon.TokenVariable(c.Who), "its token"), c.Who))
		}
	}
	return err
}

// ago words a time before now.
func (e *examination) ago(at int64) string { return span(e.now-at) + " ago" }

// span words a duration in ms.
func span(ms int64) string {
	switch d := time.Duration(max(0, ms)) * time.Millisecond; {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
}

// Limits of the clock.
const (
	maxAhead = 10 * time.Second
	maxStep  = time.Minute
	clockAge = 24 * time.Hour // older steps are past
	clockFix = "check the time of every machine with `timedatectl` and let NTP set it; the daemons go on once it is right"
)

// clock finds times that the clock cannot have shown.
func (e *examination) clock(ctx context.Context) error {
	a, err := e.st.Arrivals(ctx)
	if err != nil {
		return err
	}
	if ahead := a.Last - e.now; ahead > maxStep.Milliseconds() {
		e.warn("clock-ahead", fmt.Sprintf("message %d arrived %s in the future: the clock was ahead, or is behind now", a.LastID, span(ahead)), clockFix)
	} else if a.Step > maxStep.Milliseconds() && a.StepAt > e.before(clockAge) {
		e.warn("clock-step", fmt.Sprintf("the clock went back by %s between messages %d and %d", span(a.Step), a.SteppedA, a.SteppedB), clockFix)
	}
	return nil
}
