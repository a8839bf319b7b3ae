package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"arizuko/gated/internal/layers"
	"arizuko/pkg/fault"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// serviceTimeout bounds one call to another service.
	serviceTimeout = 10 * time.Second
	// daemonTries is how often a row is offered to the daemon a route names.
	daemonTries = 3
)

// outcome is what another service makes of a row.
type outcome struct {
	decision store.Decision
	reply    string
}

// elsewhere lets another service decide a row. The row stays undecided until
// the answer is stored, so a crash in between asks again; the chat goes on.
func (j *judgement) elsewhere(r *row, ask func(context.Context) outcome) {
	g, c := j.g, j.batch.chat
	j.then(func() {
		if c.inflight == nil {
			c.inflight = map[int64]bool{}
		}
		c.inflight[r.ID] = true
		go g.settle(r, ask)
	})
	j.step(func(*store.Tx) error { return nil }) // the plan has something to follow
}

func (g *Gateway) settle(r *row, ask func(context.Context) outcome) {
	ctx := g.ctx // the answer is wanted for as long as the gateway runs
	o := ask(ctx)
	o.decision.Topic, o.decision.ThreadID = r.Topic, r.ThreadID
	for ctx.Err() == nil {
		err := g.st.Write(ctx, func(tx *store.Tx) error {
			if err := tx.Decide(r.ID, o.decision, g.now()); err != nil || o.reply == "" {
				return err
			}
			_, _, err := tx.PutMessage(reply(r.Message, msg.SourceCommand, o.reply, g.now()))
			return err
		})
		if err == nil || errors.Is(err, store.ErrStale) {
			break
		}
		g.log.Error("cannot store a service's answer; trying again", "row", r.ID, "err", err)
		pause(ctx, trouble)
	}
	select {
	case g.finished <- finished{r.ChatJID, r.ID}:
	case <-ctx.Done():
	}
}

// handToDaemon offers a row to the daemon its route names.
func (j *judgement) handToDaemon(r *row) {
	name := strings.TrimPrefix(r.answer.Target, "daemon:")
	base, known := j.g.cfg.Daemons[name]
	body := handedRow{Message: wireMessage(r.Message), RouteID: r.answer.RouteID}
	j.elsewhere(r, func(ctx context.Context) outcome {
		failed := outcome{decision: store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonDaemonFailed}}
		if !known {
			j.g.log.Error("row dropped: a route names a daemon that DAEMONS does not", "row", r.ID, "daemon", name)
			return failed
		}
		var answer struct {
			Reply string `json:"reply"`
		}
		var err error
		for try := range daemonTries {
			pause(ctx, time.Duration(try)*time.Second)
			if err = call(ctx, httpx.NewClient(base, j.g.cfg.Routd.Secret), http.MethodPost, "", body, &answer); err == nil {
				return outcome{store.Decision{Disposition: msg.Routed, Reason: msg.ReasonDaemon, RoutedTo: r.answer.Target}, answer.Reply}
			}
		}
		j.g.log.Error("row dropped: the daemon did not take it", "row", r.ID, "daemon", name, "tries", daemonTries, "err", err)
		return failed
	})
}

// handedRow is what a daemon named by a route is sent.
type handedRow struct {
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

// askService has a command answered by the service that owns its subject.
func (j *judgement) askService(r *row) {
	ask := j.g.askDashd
	if r.command.Name != layers.CommandStatus {
		ask = j.g.askOnbod
	}
	j.elsewhere(r, func(ctx context.Context) outcome {
		return outcome{store.Decision{Disposition: msg.Command, Reason: msg.ReasonCommand}, ask(ctx, r)}
	})
}

type serviceText struct {
	Text string `json:"text"`
}

func (g *Gateway) askDashd(ctx context.Context, r *row) string {
	query := url.Values{"chat_jid": {r.ChatJID}, "thread_id": {r.ThreadID}}
	var answer serviceText
	err := call(ctx, g.cfg.Dashd, http.MethodGet, "/status?"+query.Encode(), nil, &answer)
	return said(answer.Text, err, "the status", "dashd")
}

func (g *Gateway) askOnbod(ctx context.Context, r *row) string {
	code, rest, _ := strings.Cut(strings.TrimSpace(r.command.Args), " ")
	if code == "" {
		return "Which request? Write the code behind the command, as in /" + r.command.Name + " ABCD-1234."
	}
	body := map[string]string{"code": code, "by": r.Sender}
	if rest = strings.TrimSpace(rest); rest != "" {
		field := "folder"
		if r.command.Name == layers.CommandReject {
			field = "reason"
		}
		body[field] = rest
	}
	var answer serviceText
	err := call(ctx, g.cfg.Onbod, http.MethodPost, "/"+r.command.Name, body, &answer)
	return said(answer.Text, err, "requests", "onbod")
}

// said is a service's answer for people, or what kept it from answering.
func said(text string, err error, what, daemon string) string {
	var f *fault.Error
	switch {
	case err == nil && text != "":
		return text
	case err == nil:
		return "Done."
	case errors.As(err, &f) && f.Kind != fault.Unavailable && f.Kind != fault.Internal:
		return f.Message
	}
	return "The service for " + what + " (" + daemon + ") is not answering. Try again later, or ask an operator to start it."
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
