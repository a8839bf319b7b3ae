package facts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/daemon"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// How long something may wait before it counts as stuck.
const (
	maxHeld     = 7 * time.Minute // the gate holds a row for 5 min, IMPULSE_MAX_HOLD
	maxParked   = 5 * time.Minute // gated looks at parked rows once a minute
	maxPending  = time.Hour
	maxQueued   = 5 * time.Minute
	maxFuture   = 24 * time.Hour // the longest pause before a retry is far below
	maxUnsent   = 5 * time.Minute
	maxDownload = 5 * time.Minute // three tries within the minute
	failedAge   = 24 * time.Hour
	maxOverdue  = 2 * time.Minute // after the slot of a reminder
	maxTurns    = 200             // turns that are looked at
	manyRefused = 100             // messages within an hour
)

// Limits of the clock.
const (
	maxAhead = 10 * time.Second
	maxStep  = time.Minute
	clockAge = 24 * time.Hour // older steps are past
	clockFix = "check the time of every machine with `timedatectl` and let NTP set it; " +
		"the daemons go on once it is right"
)

// Instance is the subject of facts: stored rows, and settings from the environment of the caller.
type Instance struct {
	Rows      store.Reader
	Now       int64 // unix ms
	Daemons   Daemons
	Operators []string // OPERATORS
	MaxAgents int
	HasToken  func(adapter string) bool
}

// finder finds stored facts.
type finder struct {
	*Instance
	List
}

// Stored are the facts about rows that wait, have failed or are late. After an error they are those that were found
// before it.
func (in *Instance) Stored(ctx context.Context) ([]Fact, error) {
	f := &finder{Instance: in}
	for _, find := range []func(context.Context) error{
		f.clock, f.undecided, f.parked, f.requests, f.limited, f.turns, f.outbound, f.undelivered, f.files, f.failing,
		f.reminders,
	} {
		if err := find(ctx); err != nil {
			return f.Found, err
		}
	}
	return f.Found, nil
}

func (in *Instance) runs(name string) bool { return in.Daemons.Runs(name, in.Now) }

// before is the time so long ago, in unix ms.
func (in *Instance) before(age time.Duration) int64 { return in.Now - age.Milliseconds() }

// oldest words the oldest of rows that wait.
func (in *Instance) oldest(w factrows.Waiting, where string) string {
	return fmt.Sprintf(", the oldest (%d, %s %s) for %s", w.Oldest, where, w.ChatJID, Span(in.Now-w.Since))
}

// Deciders are the daemons that the decision about a row takes.
func Deciders() []string { return []string{gated, "routd", "onbod"} }

// clock finds times that the clock cannot have shown.
func (f *finder) clock(ctx context.Context) error {
	a, err := factrows.Arrivals(ctx, f.Rows)
	if ahead := a.Last - f.Now; ahead > maxStep.Milliseconds() {
		f.Warn("clock-ahead", fmt.Sprintf("message %d arrived %s in the future: the clock was ahead, or is behind now",
			a.LastID, Span(ahead)), clockFix)
	} else if a.Step > maxStep.Milliseconds() && a.StepAt > f.before(clockAge) {
		f.Warn("clock-step", fmt.Sprintf("the clock went back by %s between messages %d and %d", Span(a.Step),
			a.SteppedA, a.SteppedB), clockFix)
	}
	return err
}

// undecided finds rows that no decision was made for.
func (f *finder) undecided(ctx context.Context) error {
	w, err := factrows.Undecided(ctx, f.Rows, "", 0)
	if err != nil || w.Rows == 0 || w.Since > f.before(maxHeld) {
		return err
	}
	text := Count(w.Rows, "message is", "messages are") + " not decided" + f.oldest(w, "in")
	if name, trouble := f.Daemons.Missing(f.Now, Deciders()...); name != "" {
		f.Problem("undecided", text+": "+trouble, f.Daemons.again(name)).
			on("/messages?disposition=undecided", "Undecided messages", "")
		return nil
	}
	f.Problem("undecided", text, fmt.Sprintf("`gated why %d` says what it waits for", w.Oldest)).
		on(fmt.Sprintf("/messages/%d", w.Oldest), "The oldest", "its page says what it waits for")
	return nil
}

// parked finds rows of unknown chats that no request waits for.
func (f *finder) parked(ctx context.Context) error {
	w, err := factrows.ParkedWithoutRequest(ctx, f.Rows, f.before(maxParked))
	if w.Rows > 0 {
		f.Problem("parked", Count(w.Rows, "message is", "messages are")+
			" parked and no request is pending for the chat"+f.oldest(w, "in"),
			"restart gated: it looks at parked messages at its start; onbod must run, too").Restarts(gated).
			on("/lost?reason=parked", "Parked messages", "")
	}
	return err
}

// requests finds those that wait for an operator.
func (f *finder) requests(ctx context.Context) error {
	newest, err := factrows.Requests(ctx, f.Rows, factrows.RequestPending, 1)
	if err != nil {
		return err
	}
	const path, page, do = "/approvals", "Approvals", "approve or reject it"
	if len(newest) > 0 && newest[0].CreatedAt-f.Now > maxStep.Milliseconds() {
		r := newest[0]
		f.Warn("clock-request", fmt.Sprintf("request %s of %s was made %s in the future: it expires that much later",
			r.Code, r.ChatJID, Span(r.CreatedAt-f.Now)),
			"approve or reject it; "+clockFix).on(path, page, do)
	}
	pending, code, err := factrows.WaitingRequests(ctx, f.Rows)
	if err != nil || pending.Rows == 0 || pending.Since > f.before(maxPending) {
		return err
	}
	fix := "decide it: " + DecideRequest(code)
	operators, err := Operators(ctx, f.Rows, f.Operators)
	if err != nil {
		return err
	}
	if len(operators) == 0 {
		fix += "; no user of a platform is an operator, so none was notified"
	}
	f.Warn("requests", fmt.Sprintf("%s for an operator, the oldest (%s, of %s) for %s",
		Count(pending.Rows, "request of a chat waits", "requests of chats wait"), code, pending.ChatJID,
		Span(f.Now-pending.Since)), fix).on(path, page, do)
	return nil
}

// DecideRequest says how an operator decides a request.
func DecideRequest(code string) string {
	return fmt.Sprintf("%s or %s in a chat, or the dashboard's page Approvals",
		msg.CommandAnywhere(msg.CommandApprove+" "+code), msg.CommandAnywhere(msg.CommandReject+" "+code))
}

// limited finds messages that were dropped since too many chats asked to be connected.
func (f *finder) limited(ctx context.Context) error {
	for reason, why := range map[msg.Reason]string{
		msg.ReasonRateLimit: "their senders have had as many turns as the rate of a group allows",
		msg.ReasonNoAccess:  "the role ask of a group does not list their senders",
	} {
		n, err := factrows.Refused(ctx, f.Rows, reason, f.before(time.Hour))
		if err != nil {
			return err
		}
		if n >= manyRefused {
			f.Warn("refused", fmt.Sprintf("%d messages were dropped within an hour: %s (%s)", n, why, reason),
				"look who writes so much, and whether the group's settings are meant so: the dashboard's page "+
					"Messages lists them").About(string(reason)).
				on("/messages?disposition=dropped&reason="+string(reason), "Dropped messages",
					"look who writes so much; the settings on the group's page change who may, and how often")
		}
	}
	n, err := factrows.Refused(ctx, f.Rows, msg.ReasonOnboardingLimit, f.before(time.Hour))
	if n > 0 {
		const raise = "reject requests that wait, or raise REQUESTS_PER_SENDER, REQUESTS_PER_HOUR or " +
			"REQUESTS_PENDING for onbod"
		f.Warn("requests-limited", Count(n, "message of unknown chats was", "messages of unknown chats were")+
			" dropped within an hour: too many requests were made or wait (onboarding_limit)",
			"connect a chat by a route, `routd routes add`; "+raise).on("/approvals", "Approvals", "approve or "+raise)
	}
	return err
}

// turns finds turns that no run takes, running turns without a run, and failed ones.
func (f *finder) turns(ctx context.Context) error {
	running, _, err := factrows.OldestTurns(ctx, f.Rows, msg.TurnRunning, maxTurns)
	if err != nil {
		return err
	}
	queued, total, err := factrows.OldestTurns(ctx, f.Rows, msg.TurnQueued, maxTurns)
	if err != nil {
		return err
	}
	runs, err := factrows.UnendedRuns(ctx, f.Rows)
	if err != nil {
		return err
	}
	f.lostRuns(running, runs)
	f.queue(running, queued, total)
	failed, err := f.Rows.Turns(ctx, store.TurnList{State: msg.TurnFailed, Limit: maxTurns})
	failed = slices.DeleteFunc(failed, func(t *msg.Turn) bool { return t.EndedAt < f.before(failedAge) })
	if len(failed) > 0 {
		last := failed[0] // the newest
		f.Warn("turns-failed", fmt.Sprintf("%s within a day; the newest is turn %d of %s: %s",
			Count(len(failed), "turn failed", "turns failed"), last.ID, last.Folder,
			cmp.Or(last.Error, last.Reason.Words())),
			fmt.Sprintf("fix the cause, then try it again: `gated retry %d`", last.ID)).
			on("/turns/retry", "Retry failed turns", "fix the cause, then retry them together").
			Press(fmt.Sprintf("/turns/%d/retry", last.ID), fmt.Sprint("Retry turn ", last.ID))
	}
	return err
}

// lostRuns finds turns that are running by the rows while their run has ended. While gated is down that is
// how its rows look: it requeues them when it starts.
func (f *finder) lostRuns(running []*msg.Turn, runs []*msg.Run) {
	for _, t := range running {
		live := slices.ContainsFunc(runs, func(r *msg.Run) bool { return r.ID == t.RunID })
		if !live && t.StartedAt < f.before(time.Minute) && f.runs(gated) {
			f.Problem("turn-lost", fmt.Sprintf("turn %d of %s is running, but its run %d has ended", t.ID, t.Folder,
				t.RunID),
				"restart gated: it ends or requeues such turns at its start").Restarts(gated).
				About(fmt.Sprint(t.ID)).on(fmt.Sprintf("/turns/%d", t.ID), "The turn", "")
		}
	}
}

// queue finds turns that could start and do not.
func (f *finder) queue(running, queued []*msg.Turn, total int) {
	busy := map[string]bool{}
	for _, t := range running {
		busy[t.Lane()] = true
	}
	var ready *msg.Turn // the oldest that could start
	for _, t := range queued {
		switch {
		case t.NotBefore > f.Now+maxFuture.Milliseconds():
			f.Problem("clock-turn",
				fmt.Sprintf("turn %d of %s does not start for another %s: it was queued while the clock was ahead",
					t.ID, t.Folder, Span(t.NotBefore-f.Now)),
				fmt.Sprintf("end the wait: `gated retry %d`", t.ID)).
				About(fmt.Sprint(t.ID)).on(fmt.Sprintf("/turns/%d", t.ID), "The turn", "a retry ends the wait").
				Press(fmt.Sprintf("/turns/%d/retry", t.ID), fmt.Sprint("Retry turn ", t.ID))
		case ready == nil && !busy[t.Lane()] && t.NotBefore <= f.Now &&
			max(t.CreatedAt, t.NotBefore) < f.before(maxQueued):
			ready = t
		}
		busy[t.Lane()] = true // the others of the lane wait for this one
	}
	if ready == nil {
		return
	}
	text := Count(total, "turn is queued", "turns are queued") +
		fmt.Sprintf(", the oldest (%d, of %s) for %s", ready.ID, ready.Folder, Span(f.Now-ready.CreatedAt))
	const path, page = "/turns?state=queued", "Queued turns"
	switch _, trouble := f.Daemons.Missing(f.Now, gated); {
	case trouble != "":
		f.Problem("queue", text+": "+trouble, f.Daemons.again(gated)).on(path, page, "")
	case len(running) >= f.MaxAgents:
		f.Warn("queue-busy", fmt.Sprintf("%s: all %d agents are busy", text, len(running)),
			"raise MAX_AGENTS if the machine can bear it, or end a run with "+msg.CommandAnywhere(msg.CommandStop)+
				" in its chat").
			on("/turns?state=running", "Running turns",
				"cancel one there, or raise MAX_AGENTS if the machine can bear it")
	default:
		f.Problem("queue", text+", and no run takes it",
			"look at gated's log and `gated check`; restart gated: it continues where it stopped").Restarts(gated).
			on(path, page, "")
	}
}

// outbound finds messages that are not delivered.
func (f *finder) outbound(ctx context.Context) error {
	platforms, err := factrows.UnsentByPlatform(ctx, f.Rows)
	foreign := 0 // platforms that no adapter of this suite serves
	for _, w := range platforms {
		if w.Since > f.before(maxUnsent) {
			continue
		}
		if msg.DaemonOf(w.ChatJID) == "" {
			if foreign++; foreign > maxNamed {
				continue
			}
		}
		if err := f.unsent(ctx, w); err != nil {
			return err
		}
	}
	if more := foreign - maxNamed; more > 0 {
		f.Problem("unsent", "messages wait for "+Count(more, "more platform", "more platforms")+
			" that no adapter of this suite serves",
			"remove the chats that use them").on("/messages?state=waiting", "Messages that are to be sent", "")
	}
	return err
}

// unsent says why the messages of a platform wait. A bad connection is a fact of its own.
func (f *finder) unsent(ctx context.Context, w factrows.PlatformWaiting) error {
	name := msg.DaemonOf(w.ChatJID)
	text := Count(w.Rows, "message waits", "messages wait") + " for " + w.Platform + f.oldest(w.Waiting, "to")
	found := func(because, fix string) *Fact {
		return f.Problem("unsent", text+because, fix).About(w.Platform).
			on("/messages?state=waiting", "Messages that are to be sent", "")
	}
	switch missing, trouble := f.Daemons.Missing(f.Now, name); {
	case name == "":
		found(": no adapter of this suite serves "+w.Platform,
			"start your own adapter of this platform, or remove the chats that use it")
		return nil
	case missing != "":
		found(": "+trouble, f.startAdapter(name))
		return nil
	case f.Daemons[name].State() != daemon.Connected:
		return nil
	}
	parts, err := f.Rows.Deliveries(ctx, w.Oldest)
	fix := "look at " + name + "'s log and run " + CheckCommand(name) + "; it retries by itself for a day"
	for _, p := range parts {
		switch {
		case p.State == msg.OutSending && p.UpdatedAt < f.before(maxUnsent):
			found(", being sent since "+Ago(f.Now, p.UpdatedAt),
				"restart "+name+": the message is sent again as a possible duplicate, see RESEND").Restarts(name)
		case p.NotBefore > f.Now+maxFuture.Milliseconds():
			found(", not before "+Span(p.NotBefore-f.Now)+" from now", clockFix)
		case p.Error != "":
			found(": "+string(p.ErrorClass)+", "+p.Error, fix)
		default:
			continue
		}
		return err
	}
	found("", fix)
	return err
}

// startAdapter says how to start an adapter that does not run.
func (in *Instance) startAdapter(name string) string {
	if fix := in.Daemons[name].wait(); fix != "" {
		return fix
	}
	fix := "start " + name
	if variable := daemon.TokenVariable(name); variable != "" && !in.HasToken(name) {
		fix += ", which needs " + variable
	}
	if program, account := msg.SplitAccount(name); account != "" {
		fix += fmt.Sprintf(" and %s_ACCOUNT=%s", strings.ToUpper(program), account)
	}
	return fix
}

// undelivered finds messages that failed for good, or may have arrived twice or not at all.
func (f *finder) undelivered(ctx context.Context) error {
	rows, err := factrows.Undelivered(ctx, f.Rows, f.before(failedAge))
	for state, words := range map[msg.OutState][2]string{
		msg.OutFailed:    {"message was not delivered", "messages were not delivered"},
		msg.OutAmbiguous: {"message may have arrived or not", "messages may have arrived or not"},
	} {
		var ids []string
		last := ""
		for _, u := range rows {
			if u.State != state {
				continue
			}
			ids = append(ids, fmt.Sprint(u.ID))
			if last == "" && u.Error != "" {
				last = ": " + u.Error
			}
		}
		if n := len(ids); n > 0 {
			f.Warn("delivery-"+string(state), fmt.Sprintf("%s within a day (%s)%s", Count(n, words[0], words[1]),
				strings.Join(ids[:min(n, maxNamed)], ", "), last),
				"`gated why ID` says more; `gated lost` lists them, `gated lost resend ID` sends a copy").
				on("/lost", "Lost and found", "the page lists them, says more, and sends a copy")
		}
	}
	return err
}

// files finds attachments that were never downloaded.
func (f *finder) files(ctx context.Context) error {
	w, err := factrows.WantedFiles(ctx, f.Rows, f.before(maxDownload))
	if w.Rows > 0 {
		f.Problem("files", "the files of "+Count(w.Rows, "message", "messages")+" were not downloaded"+
			f.oldest(w, "in"),
			"start "+cmp.Or(msg.DaemonOf(w.ChatJID), "its adapter")+", or look at its log").
			on(fmt.Sprintf("/messages/%d", w.Oldest), "The oldest", "")
	}
	return err
}

// failing finds groups whose turns fail alike.
func (f *finder) failing(ctx context.Context) error {
	groups, err := factrows.FailingGroups(ctx, f.Rows)
	for _, g := range groups {
		const others = "; the others follow once one is answered"
		f.Problem("group-fails", fmt.Sprintf("%s (the last %d, since %s)", GroupFails(g.Folder, g.Problem), g.Count,
			Ago(f.Now, g.Since)),
			"correct the cause (`gated agent try` shows the agent's output, logs/"+g.Folder+"/ has its log)"+others).
			About(g.Folder).on("/groups/"+g.Folder+"#agent", "The group", "correct the cause: a failed turn's page "+
			"has the agent's log, and the group's page chooses another agent or model"+others)
	}
	return err
}

func (f *finder) reminders(ctx context.Context) error {
	late, err := OverdueReminders(ctx, f.Rows, f.Now, f.runs(gated))
	f.Add(late...)
	return err
}

// OverdueReminders finds reminders that should have fired by now, in unix ms. runs says whether gated, which fires
// them, does.
func OverdueReminders(ctx context.Context, st store.Reader, now int64, runs bool) ([]Fact, error) {
	late, err := factrows.Reminders(ctx, st,
		factrows.ReminderList{DueBy: now - maxOverdue.Milliseconds(), Limit: maxTurns})
	if err != nil || len(late) == 0 {
		return nil, err
	}
	var named []string
	zone := "" // the remedy for the first one in an unknown time zone
	for _, r := range late[:min(len(late), maxNamed)] {
		line := fmt.Sprintf("reminder %d of %s in %s is overdue for %s", r.ID, r.Folder, r.ChatJID,
			Span(now-r.NextSlot))
		if _, err := time.LoadLocation(r.TimeZone); err != nil {
			line += ", since there is no time zone " + strconv.Quote(r.TimeZone)
			zone = cmp.Or(zone, fmt.Sprintf("`gated reminders cancel %d`, and make it again in a time zone such as "+
				"Europe/Berlin", r.ID))
		}
		named = append(named, line)
	}
	if more := len(late) - maxNamed; more > 0 {
		named = append(named, fmt.Sprint(more, " more"))
	}
	var l List
	const restart = "look at gated's log and restart gated; "
	f := l.Problem("reminders", strings.Join(named, "; "),
		fmt.Sprint(restart, "`gated reminders cancel ", late[0].ID, "` ends the first"))
	f.Restarts(gated).on("/reminders", "Reminders", restart+"the page cancels them").
		Press(fmt.Sprintf("/reminders/%d/cancel", late[0].ID), fmt.Sprint("Cancel reminder ", late[0].ID))
	if zone != "" {
		f.Fix = zone
	} else if !runs {
		f.Restart, f.Page.Fix = nil, ""
		f.Fix = "start gated: a reminder that was missed fires once, unless it says otherwise"
	}
	return l.Found, nil
}
