// Package alerts tells operators in their direct chats of each new problem, once, and of its end.
package alerts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/facts"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	lookEvery = time.Minute
	maxHourly = 3 // messages to an operator
	maxNamed  = 5 // problems in a message, or in the answer to a command
	maxEnded  = 12 * time.Hour
	keepEnded = 30 * 24 * time.Hour

	cursorOwner, setPrefix = "dashd", "alerts:" // and the operator; "on" or "off"
)

// Alerts tells operators of problems. All fields but the strings are needed.
type Alerts struct {
	Store     *store.Store
	Examine   func(context.Context) ([]facts.Fact, error)
	Operators []string // OPERATORS
	Off       bool
	Quiet     string // when operators are not notified, as in 22:00-07:00 by the local clock
	Heartbeat string // a URL that is called while no problem is open
	Dashboard string // its address for browsers
	Now       func() time.Time
	Log       *slog.Logger

	silent bool // the heartbeat fails
}

// Run looks once a minute until ctx ends.
func (a *Alerts) Run(ctx context.Context) error {
	return store.NewOutage(a.Log, "alerts").Repeat(ctx, lookEvery, a.look)
}

// look stores what is wrong now and who is notified of it, in one commit.
func (a *Alerts) look(ctx context.Context) error {
	found, err := a.Examine(ctx)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(f facts.Fact) bool { return !f.Alerts() })
	now := a.Now()
	chats, err := a.chats(ctx, now)
	if err != nil {
		return err
	}
	err = a.Store.Write(ctx, func(tx *store.Tx) error {
		err := rows.LookAlerts(tx, found, now.UnixMilli(), now.Add(-keepEnded).UnixMilli())
		for _, operator := range slices.Sorted(maps.Keys(chats)) {
			if err == nil {
				err = a.tell(tx, operator, chats[operator], now)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	open, err := rows.OpenAlerts(ctx, a.Store.Reader)
	if err == nil && len(open) == 0 {
		a.beat(ctx)
	}
	return err
}

// chats are the direct chats of the operators that may be notified now. One on a platform that is out of reach waits,
// and gets what still lasts then.
func (a *Alerts) chats(ctx context.Context, now time.Time) (map[string]string, error) {
	if a.Hushed() {
		return nil, nil
	}
	all, err := facts.OperatorChats(ctx, a.Store.Reader, a.Operators)
	if err != nil {
		return nil, err
	}
	daemons, err := facts.ReadDaemons(ctx, a.Store.Reader)
	if err != nil {
		return nil, err
	}
	set, err := a.Store.DaemonCursors(ctx, cursorOwner, setPrefix)
	maps.DeleteFunc(all, func(operator, jid string) bool {
		name := msg.DaemonOf(jid)
		return set[setPrefix+operator] == "off" || name != "" && daemons[name].Trouble(now.UnixMilli()) != ""
	})
	return all, err
}

// Hushed reports whether operators are not notified now.
func (a *Alerts) Hushed() bool { return a.Off || within(a.Quiet, a.Now()) }

// within reports whether a clock shows a time of hours, as in 22:00-07:00.
func within(hours string, now time.Time) bool {
	from, to, _ := strings.Cut(hours, "-")
	clock := now.Local().Format("15:04")
	if from > to {
		return clock >= from || clock < to
	}
	return clock >= from && clock < to
}

// tell tells an operator of all that is new, in one message, unless there were too many within the hour.
func (a *Alerts) tell(tx *store.Tx, operator, jid string, now time.Time) error {
	ctx, at := store.Uncancelled(), now.UnixMilli()
	pending, err := rows.PendingAlerts(ctx, tx.Reader, operator, at, now.Add(-maxEnded).UnixMilli())
	if err != nil || len(pending) == 0 {
		return err
	}
	sent, err := rows.AlertMessages(ctx, tx.Reader, operator, now.Add(-time.Hour).UnixMilli())
	if err != nil || sent >= maxHourly {
		return err
	}
	id, err := tx.PutNotice(jid, "", a.text(pending), at)
	if err != nil {
		return err
	}
	for i := range pending {
		if err := rows.PutAlertNotice(tx, operator, &pending[i], id, at); err != nil {
			return err
		}
	}
	return nil
}

// text is a message about problems. Their texts may quote what others wrote.
func (a *Alerts) text(all []rows.Alert) string {
	var parts []string
	for _, p := range all[:min(len(all), maxNamed)] {
		if p.EndedAt != 0 {
			parts = append(parts, fmt.Sprintf("✅ ended: %s, it took %s", msg.EscapeLine(p.Text),
				facts.Span(p.EndedAt-p.Since)))
			continue
		}
		parts = append(parts, "⚠️ "+msg.EscapeLine(p.Text)+"\nTo fix it: "+msg.EscapeLine(p.Fix))
	}
	if more := len(all) - maxNamed; more > 0 {
		where := "`dashd doctor`"
		if a.Dashboard != "" {
			where = a.Dashboard + "/ or " + where
		}
		parts = append(parts, fmt.Sprintf("and %s: %s", facts.Count(more, "more problem", "more problems"), where))
	}
	return strings.Join(parts, "\n\n")
}

// Serve answers POST /v1/alerts?by=&set=, the command /alerts of an operator: set is on, off, or "" to change nothing.
func (a *Alerts) Serve(w http.ResponseWriter, r *http.Request) {
	text, err := a.command(r.Context(), r.URL.Query().Get("by"), strings.ToLower(r.URL.Query().Get("set")))
	if err != nil {
		httpx.Error(w, err)
		return
	}
	httpx.JSON(w, http.StatusOK, map[string]string{"text": text})
}

func (a *Alerts) command(ctx context.Context, by, set string) (text string, err error) {
	switch set {
	case "":
	case "on", "off":
		err = a.Store.Write(ctx, func(tx *store.Tx) error { return tx.PutCursor(cursorOwner, setPrefix+by, set) })
	default:
		err = apierr.New(apierr.BadRequest, "Only %q or %q can follow the command.", "on", "off")
	}
	if err != nil {
		return "", err
	}
	open, err := rows.OpenAlerts(ctx, a.Store.Reader)
	if err != nil {
		return "", err
	}
	is, err := a.Store.DaemonCursor(ctx, cursorOwner, setPrefix+by)
	if err != nil {
		return "", err
	}
	direct, err := facts.OperatorChats(ctx, a.Store.Reader, []string{by})
	status := "You get a message about each new problem in your direct chat with the bot: " +
		msg.CommandAnywhere("alerts off") + " ends that."
	switch {
	case a.Off:
		status = "No operator gets messages about new problems: ALERTS is off."
	case is == "off":
		status = "You get no messages about new problems: " + msg.CommandAnywhere("alerts on") + " changes that."
	case direct[by] == "":
		status = "You get no messages about new problems, as you have no direct chat with a bot: put your account " +
			"there in OPERATORS and write to the bot, or allow notifications on the dashboard's page Notifications."
	}
	return cmp.Or(a.text(open), "No problem is open.") + "\n\n" + status, err
}
