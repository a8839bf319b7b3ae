package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/daemon"
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
	maxNamed    = 3               // examples in a line
)

// undecided finds rows that no decision was made for.
func (e *examination) undecided(ctx context.Context) error {
	w, err := e.st.WaitingInbound(ctx)
	if err != nil || w.Rows == 0 || w.Since > e.before(maxHeld) {
		return err
	}
	text := fmt.Sprintf("%s not decided, the oldest (%d, in %s) for %s", count(w.Rows, "message is", "messages are"), w.Oldest, w.ChatJID, span(e.now-w.Since))
	why, fix := "", fmt.Sprintf("`gated why %d` says what it waits for", w.Oldest)
	for _, name := range []string{"gated", "routd", "onbod"} {
		if !e.alive(name) {
			why, fix = ": "+name+" does not run", "start "+name+": it continues where it stopped"
			break
		}
	}
	e.problem("undecided", text+why, fix)
	return nil
}

// parked finds rows of unknown chats that no request waits for, and requests that wait for an operator.
func (e *examination) parked(ctx context.Context) error {
	w, err := e.st.ParkedWithoutRequest(ctx, e.before(maxParked))
	if err != nil {
		return err
	}
	if w.Rows > 0 {
		e.problem("parked", fmt.Sprintf("%s parked and no request is pending for the chat, the oldest (%d, in %s) for %s",
			count(w.Rows, "message is", "messages are"), w.Oldest, w.ChatJID, span(e.now-w.Since)),
			"restart gated: it looks at parked messages at its start; onbod must run, too")
	}
	newest, err := e.st.Requests(ctx, store.RequestPending, 1)
	if err != nil {
		return err
	}
	if len(newest) > 0 && newest[0].CreatedAt-e.now > maxStep.Milliseconds() {
		r := newest[0]
		e.warn("clock-request", fmt.Sprintf("request %s of %s was made %s in the future: it expires that much later", r.Code, r.ChatJID, span(r.CreatedAt-e.now)),
			"approve or reject it; "+clockFix)
	}
	pending, code, err := e.st.WaitingRequests(ctx)
	if err != nil || pending.Rows == 0 || pending.Since > e.before(maxPending) {
		return err
	}
	fix := fmt.Sprintf("open the dashboard's page Approvals, or write %s or %s in a chat as an operator",
		msg.CommandAnywhere(msg.CommandApprove+" "+code), msg.CommandAnywhere(msg.CommandReject+" "+code))
	if len(e.env.Operators) == 0 {
		fix += "; OPERATORS is empty here, so perhaps no operator was notified"
	}
	e.warn("requests", fmt.Sprintf("%s for an operator, the oldest (%s, of %s) for %s",
		count(pending.Rows, "request of a chat waits", "requests of chats wait"), code, pending.ChatJID, span(e.now-pending.Since)), fix)
	return nil
}

// limited finds messages that were dropped since too many chats asked to be connected.
func (e *examination) limited(ctx context.Context) error {
	n, err := e.st.LimitedRequests(ctx, e.before(time.Hour))
	if n > 0 {
		e.warn("requests-limited", count(n, "message of unknown chats was", "messages of unknown chats were")+" dropped within an hour: too many requests were made or wait (onboarding_limit)",
			"connect a chat by a route, `routd routes add`; reject requests that wait, or raise REQUESTS_PER_SENDER, REQUESTS_PER_HOUR or REQUESTS_PENDING for onbod")
	}
	return err
}

// turns finds turns that no run takes, and running turns without a run.
func (e *examination) turns(ctx context.Context) error {
	running, _, err := e.st.RunningTurns(ctx, maxTurns)
	if err != nil {
		return err
	}
	queued, total, err := e.st.QueuedTurns(ctx, maxTurns)
	if err != nil {
		return err
	}
	if err := e.lostRuns(ctx, running); err != nil {
		return err
	}
	e.queue(running, queued, total)
	failed, err := e.st.Turns(ctx, store.TurnList{State: msg.TurnFailed, Limit: maxTurns})
	if err != nil {
		return err
	}
	failed = slices.DeleteFunc(failed, func(t *msg.Turn) bool { return t.EndedAt < e.before(failedAge) })
	if len(failed) > 0 {
		last := failed[0] // the newest
		e.warn("turns-failed", fmt.Sprintf("%s within a day, the last (%d, of %s): %s", count(len(failed), "turn failed", "turns failed"), last.ID, last.Folder, cmp.Or(last.Error, string(last.Reason))),
			"once the cause is gone, try it again: "+fmt.Sprintf("`gated retry %d`", last.ID))
	}
	return nil
}

// lostRuns finds turns that are running by the rows while their run has ended. While gated is down that is
// how its rows look: it requeues them when it starts.
func (e *examination) lostRuns(ctx context.Context, running []*msg.Turn) error {
	runs, err := e.st.UnendedRuns(ctx)
	if err != nil || !e.alive("gated") {
		return err
	}
	live := map[int64]bool{}
	for _, r := range runs {
		live[r.ID] = true
	}
	for _, t := range running {
		if !live[t.RunID] && t.StartedAt < e.before(time.Minute) {
			e.problem("turn-lost", fmt.Sprintf("turn %d of %s is running, but its run %d has ended", t.ID, t.Folder, t.RunID), "restart gated: it ends or requeues such turns at its start")
		}
	}
	return nil
}

// queue finds turns that could start and do not.
func (e *examination) queue(running, queued []*msg.Turn, total int) {
	busy := map[string]bool{}
	for _, t := range running {
		busy[t.Lane()] = true
	}
	var ready []*msg.Turn
	for _, t := range queued {
		switch {
		case t.NotBefore > e.now+maxFuture.Milliseconds():
			e.problem("clock-turn", fmt.Sprintf("turn %d of %s does not start for another %s: it was queued while the clock was ahead", t.ID, t.Folder, span(t.NotBefore-e.now)),
				"end the wait: "+fmt.Sprintf("`gated retry %d`", t.ID))
		case !busy[t.Lane()] && t.NotBefore <= e.now && max(t.CreatedAt, t.NotBefore) < e.before(maxQueued):
			ready = append(ready, t)
		}
		busy[t.Lane()] = true // the others of the lane wait for this one
	}
	if len(ready) == 0 {
		return
	}
	text := fmt.Sprintf("%s, the oldest (%d, of %s) for %s", count(total, "turn is queued", "turns are queued"), ready[0].ID, ready[0].Folder, e.spanSince(ready[0].CreatedAt))
	switch {
	case !e.alive("gated"):
		e.problem("queue", text+": gated does not run", "start gated: it continues where it stopped")
	case len(running) >= e.env.MaxAgents:
		e.warn("queue-busy", fmt.Sprintf("%s: all %d agents are busy", text, len(running)), "raise MAX_AGENTS if the machine can bear it, or end a run with "+msg.CommandAnywhere(msg.CommandStop)+" in its chat")
	default:
		e.problem("queue", text+", and no run takes it", "look at gated's log and `gated check`; restart gated: it continues where it stopped")
	}
}

func (e *examination) spanSince(at int64) string { return span(e.now - at) }

// outbound finds messages that are not delivered.
func (e *examination) outbound(ctx context.Context) error {
	all, err := e.st.WaitingByPlatform(ctx)
	if err != nil {
		return err
	}
	foreign := 0 // platforms that no adapter of this suite serves
	for _, w := range all {
		if w.Since > e.before(maxUnsent) {
			continue
		}
		if msg.DaemonOf(w.ChatJID) == "" {
			if foreign++; foreign > maxNamed {
				continue
			}
		}
		text := fmt.Sprintf("%s for %s, the oldest (%d, to %s) for %s", count(w.Rows, "message waits", "messages wait"), w.Platform, w.Oldest, w.ChatJID, span(e.now-w.Since))
		name := msg.DaemonOf(w.ChatJID)
		switch {
		case name == "":
			e.problem("unsent", text+": no adapter of this suite serves "+w.Platform, "start your own adapter of this platform, or remove the chats that use it")
		case !e.alive(name):
			fix := "start " + name
			if variable := daemon.TokenVariable(name); variable != "" && !e.env.hasToken(name) {
				fix += ", which needs " + variable
			}
			if program, account := msg.SplitAccount(name); account != "" {
				fix += fmt.Sprintf(" and %s_ACCOUNT=%s", strings.ToUpper(program), account)
			}
			e.problem("unsent", text+": "+name+" does not run", fix)
		case daemon.Connection(e.rows[name].Connection) != daemon.Connected:
			// The connection is a finding of its own.
		default:
			if err := e.unsent(ctx, w, name, text); err != nil {
				return err
			}
		}
	}
	if more := foreign - maxNamed; more > 0 {
		e.problem("unsent", "messages wait for "+count(more, "more platform", "more platforms")+" that no adapter of this suite serves", "remove the chats that use them")
	}
	return nil
}

// unsent says why a connected adapter does not deliver a row.
func (e *examination) unsent(ctx context.Context, w store.PlatformWaiting, name, text string) error {
	parts, err := e.st.Parts(ctx, w.Oldest)
	if err != nil {
		return err
	}
	fix := "look at " + name + "'s log and run " + checkOf(name) + "; it retries by itself for a day"
	for _, p := range parts {
		switch {
		case p.State == msg.OutSending && p.UpdatedAt < e.before(maxUnsent):
			text, fix = text+", being sent since "+e.ago(p.UpdatedAt), "restart "+name+": the message is sent again as a possible duplicate, see RESEND"
		case p.NotBefore > e.now+maxFuture.Milliseconds():
			text, fix = text+", not before "+span(p.NotBefore-e.now)+" from now", clockFix
		case p.Error != "":
			text += ": " + string(p.ErrorClass) + ", " + p.Error
		default:
			continue
		}
		break
	}
	e.problem("unsent", text, fix)
	return nil
}

// undelivered finds messages that failed for good, or may have arrived twice or not at all.
func (e *examination) undelivered(ctx context.Context) error {
	all, err := e.st.Undelivered(ctx, e.before(failedAge))
	if err != nil {
		return err
	}
	for state, words := range map[msg.OutState][2]string{
		msg.OutFailed:    {"message was not delivered", "messages were not delivered"},
		msg.OutAmbiguous: {"message may have arrived or not", "messages may have arrived or not"},
	} {
		var ids []string
		last := ""
		n := 0
		for _, u := range all {
			if u.State != state {
				continue
			}
			if n++; n <= maxNamed {
				ids = append(ids, fmt.Sprint(u.ID))
			}
			if last == "" && u.Error != "" {
				last = ": " + u.Error
			}
		}
		if n > 0 {
			e.warn("delivery-"+string(state), fmt.Sprintf("%s within a day (%s)%s", count(n, words[0], words[1]), strings.Join(ids, ", "), last),
				"`gated why ID` says more; `gated lost` lists them, `gated lost resend ID` sends a copy")
		}
	}
	return nil
}

// files finds attachments that were never downloaded.
func (e *examination) files(ctx context.Context) error {
	w, err := e.st.WantedWaiting(ctx, e.before(maxDownload))
	if err != nil || w.Rows == 0 {
		return err
	}
	name := cmp.Or(msg.DaemonOf(w.ChatJID), "its adapter")
	e.problem("files", fmt.Sprintf("the files of %s were not downloaded, the oldest (%d, in %s) for %s", count(w.Rows, "message", "messages"), w.Oldest, w.ChatJID, span(e.now-w.Since)),
		"start "+name+", or look at its log")
	return nil
}

// failing finds groups whose turns fail alike.
func (e *examination) failing(ctx context.Context) error {
	groups, err := e.st.FailingGroups(ctx)
	for _, g := range groups {
		e.problem("group-fails", fmt.Sprintf("the last %d turns of %s failed alike, since %s: %s", g.Count, g.Folder, e.ago(g.Since), g.Problem),
			"correct the cause (`gated agent try` shows the agent's output, logs/"+g.Folder+"/ has its log); one turn a minute is tried, and the others follow once it is answered")
	}
	return err
}

// reminders finds reminders that should have fired.
func (e *examination) reminders(ctx context.Context) error {
	late, err := e.st.DueReminders(ctx, e.before(maxOverdue), maxTurns)
	if err != nil || len(late) == 0 {
		return err
	}
	var named []string
	for _, r := range late[:min(len(late), maxNamed)] {
		named = append(named, fmt.Sprintf("%d of %s in %s for %s", r.ID, r.Folder, r.ChatJID, span(e.now-r.NextSlot)))
	}
	fix := fmt.Sprintf("look at gated's log and restart gated; `gated reminders cancel %d` ends the first", late[0].ID)
	if !e.alive("gated") {
		fix = "start gated: a reminder that was missed fires once, unless it says otherwise"
	}
	e.problem("reminders", count(len(late), "reminder is overdue: ", "reminders are overdue, the first: ")+strings.Join(named, "; "), fix)
	return nil
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
