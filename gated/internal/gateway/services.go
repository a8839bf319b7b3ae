package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// serviceTimeout bounds one call to another service.
	serviceTimeout = 10 * time.Second
	// maxCalls bounds the concurrent calls to services.
	maxCalls = 64
	// maxDaemonTries is how often a row is posted to the daemon of its route.
	maxDaemonTries = 3
)

// outcome is how another service decides a row.
type outcome struct {
	decision store.Decision
	reply    string
}

// pendingCall is a call to another service about a row. It keeps the id alone: a
// backlog of calls must not fill the memory.
type pendingCall struct {
	row int64
	ask func(context.Context, *msg.Message) outcome
}

// deferTo lets another service decide a row. The row stays undecided until the
// answer is stored, so a crash in between repeats the call; the chat's other rows
// go on. Calls with inOrder run one after another within a chat.
func (d *decider) deferTo(ctx context.Context, r *row, inOrder bool, ask func(context.Context, *msg.Message) outcome) {
	g, c, e := d.g, d.batch.chat, pendingCall{r.ID, ask}
	d.deferred = append(d.deferred, r.ID)
	g.logWaits(r, waitsService)
	d.then(func() {
		c.skip(e.row)
		if inOrder {
			if c.calls = append(c.calls, e); len(c.calls) > 1 {
				return
			}
		}
		go g.runCall(ctx, c.jid, e)
	})
}

// nextCall starts the chat's next call in order after the one for row.
func (g *Gateway) nextCall(ctx context.Context, c *chat, row int64) {
	if len(c.calls) == 0 || c.calls[0].row != row {
		return
	}
	if c.calls = c.calls[1:]; len(c.calls) > 0 {
		go g.runCall(ctx, c.jid, c.calls[0])
	}
}

func (g *Gateway) runCall(ctx context.Context, jid string, e pendingCall) {
	select {
	case g.callSlots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	g.completeCall(ctx, e)
	<-g.callSlots
	select {
	case g.callsDone <- callDone{jid, e.row}:
	case <-ctx.Done():
	}
}

// completeCall makes the call and stores its answer, retrying while the database fails.
func (g *Gateway) completeCall(ctx context.Context, e pendingCall) {
	var o *outcome
	for ; ctx.Err() == nil; pause(ctx, dbRetryDelay) {
		m, err := g.st.Message(ctx, e.row)
		if err == nil && (m == nil || m.Disposition != "") {
			return
		}
		if err == nil {
			if o == nil {
				answer := e.ask(ctx, m)
				o = &answer
			}
			if err = g.storeOutcome(ctx, m, *o); err == nil {
				g.logDecided(m.ChatJID, &decision{row: m.ID, Decision: o.decision})
			}
		}
		if err == nil || errors.Is(err, store.ErrStale) {
			return
		}
		g.log.Error("storing service answer failed; retrying", "row", e.row, "err", err)
	}
}

func (g *Gateway) storeOutcome(ctx context.Context, m *msg.Message, o outcome) error {
	o.decision.Topic, o.decision.ThreadID = m.Topic, m.ThreadID
	return g.st.Write(ctx, func(tx *store.Tx) error {
		if err := tx.Decide(m.ID, o.decision, g.now()); err != nil || o.reply == "" {
			return err
		}
		_, _, err := tx.PutMessage(replyMessage(m, msg.SourceCommand, o.reply, g.now()))
		return err
	})
}

// onboarding is the daemon that opens a request for a chat without a group.
const onboarding = "onbod"

// deferToDaemon posts a row to the daemon that its route names. Without an
// onboarding daemon its rows wait as unrouted ones do.
func (d *decider) deferToDaemon(ctx context.Context, r *row) {
	name := strings.TrimPrefix(r.answer.Target, "daemon:")
	client := d.g.daemons[name]
	if client == nil && name == onboarding {
		d.unrouted = true
		d.g.logWaits(r, waitsRoute)
		return
	}
	target, route := r.answer.Target, r.answer.RouteID
	d.deferTo(ctx, r, true, func(ctx context.Context, m *msg.Message) outcome {
		failed := outcome{decision: store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonDaemonFailed}}
		if client == nil {
			d.g.log.Error("row dropped: its route names a daemon that DAEMONS does not have", "row", m.ID, "daemon", name)
			return failed
		}
		answer, err := postRow(ctx, client, daemonRequest{Message: wireMessage(m), RouteID: route})
		if err != nil {
			d.g.log.Error("row dropped: the daemon did not accept it", "row", m.ID, "daemon", name, "attempts", maxDaemonTries, "err", err)
			return failed
		}
		return outcome{store.Decision{Disposition: msg.Routed, Reason: msg.ReasonDaemon, RoutedTo: target}, answer}
	})
}

// postRow posts a row to a daemon until it accepts it, and returns the reply, if
// there is one.
func postRow(ctx context.Context, client *httpx.Client, body daemonRequest) (string, error) {
	var raw httpx.Raw
	var err error
	for try := range maxDaemonTries {
		pause(ctx, time.Duration(try)*time.Second)
		if err = call(ctx, client, http.MethodPost, "", body, &raw); err != nil {
			continue
		}
		var answer struct {
			Reply string `json:"reply"`
		}
		_ = json.Unmarshal(raw, &answer) // an answer of another form has no reply
		return answer.Reply, nil
	}
	return "", err
}

// daemonRequest is what the daemon of a route receives.
type daemonRequest struct {
	Message message `json:"message"`
	RouteID int64   `json:"route_id"`
}

// message is a row on the wire.
type message struct {
	ID          int64            `json:"id"`
	ChatJID     string           `json:"chat_jid"`
	PlatformID  string           `json:"platform_id"`
	Sender      string           `json:"sender"`
	SenderName  string           `json:"sender_name"`
	Verb        string           `json:"verb"`
	Content     string           `json:"content"`
	Attachments []msg.Attachment `json:"attachments"`
	Topic       string           `json:"topic"`
	ThreadID    string           `json:"thread_id"`
	ReplyToID   string           `json:"reply_to_id"`
	TargetID    string           `json:"target_id"`
	Timestamp   int64            `json:"timestamp"`
}

func wireMessage(m *msg.Message) message {
	return message{m.ID, m.ChatJID, m.PlatformID, m.Sender, m.SenderName, m.Verb, m.Content, m.Attachments,
		m.Topic, m.ThreadID, m.ReplyToID, m.TargetID, m.Timestamp}
}

// askService lets the service that owns a command's subject answer it.
func (d *decider) askService(ctx context.Context, r *row) {
	ask := d.g.askDashd
	if r.command.Name != msg.CommandStatus {
		ask = d.g.askOnbod
	}
	d.deferTo(ctx, r, false, func(ctx context.Context, _ *msg.Message) outcome {
		return outcome{store.Decision{Disposition: msg.Command, Reason: msg.ReasonCommand}, ask(ctx, r)}
	})
}

type serviceText struct {
	Text string `json:"text"`
}

func (g *Gateway) askDashd(ctx context.Context, r *row) string {
	query := url.Values{"chat_jid": {r.ChatJID}, "thread_id": {r.ThreadID}, "topic": {r.Topic}}
	var answer serviceText
	err := call(ctx, g.cfg.Dashd, http.MethodGet, "/status?"+query.Encode(), nil, &answer)
	return serviceReply(answer.Text, err, dashdDown)
}

func (g *Gateway) askOnbod(ctx context.Context, r *row) string {
	code, rest, _ := strings.Cut(strings.TrimSpace(r.command.Args), " ")
	if code == "" {
		return "Which request? Write the code after the command, as in /" + r.command.Name + " ABCD-1234."
	}
	body := map[string]string{"code": code, "by": r.Sender}
	if rest = strings.TrimSpace(rest); rest != "" {
		field := "folder"
		if r.command.Name == msg.CommandReject {
			field = "reason"
		}
		body[field] = rest
	}
	var answer serviceText
	err := call(ctx, g.cfg.Onbod, http.MethodPost, "/"+r.command.Name, body, &answer)
	return serviceReply(answer.Text, err, onbodDown)
}

// Replies to users while a service does not answer.
const (
	dashdDown = "The service for the status (dashd) is not answering. Try again later, or ask an operator to start it."
	onbodDown = "Requests cannot be approved or rejected: their service (onbod) is not answering. It is not part of this version yet."
)

// serviceReply is the reply to the user: a service's answer, or down if there is none.
func serviceReply(text string, err error, down string) string {
	var f *apierr.Error
	switch {
	case err == nil && text != "":
		return text
	case err == nil:
		return "Done."
	case errors.As(err, &f) && f.Kind != apierr.Unavailable && f.Kind != apierr.Internal:
		return f.Message
	}
	return down
}

func call(ctx context.Context, client *httpx.Client, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	return client.Do(ctx, method, path, in, out)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
