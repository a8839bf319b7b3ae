// Package services has commands answered that take a call to another service or many reads, and has the daemons that
// routes name decide rows. It stores nothing.
package services

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/why"
)

const (
	// callTimeout bounds one call to another service.
	callTimeout = 10 * time.Second
	// maxDaemonTries is how often a row is posted to the daemon of its route.
	maxDaemonTries = 3
)

// Services decide rows. They are safe for concurrent use.
type Services struct {
	Store               store.Reader
	Log                 *slog.Logger
	Now                 func() time.Time
	Routd, Onbod, Dashd *httpx.Client
	Daemons             map[string]*httpx.Client // by name, for routes to daemon:NAME
	Defaults            groupconfig.Config       // the agents that groups may name

	CheckAgent func(ctx context.Context, name string) error // why an agent cannot be run; nil checks nothing
}

// Outcome is how a service decides a row.
type Outcome struct {
	Decision store.Decision
	Reply    string
	Revokes  int64 // the permission rule that the row revokes, 0 for none
}

// Decide calls the service that an effect names. A panic costs the row.
func (s *Services) Decide(ctx context.Context, p decide.AskService, m *msg.Message) (o Outcome) {
	defer func() {
		if cause := recover(); cause != nil {
			problem := fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())
			s.Log.Error("row dropped: its service call panicked", "row", m.ID, "chat", m.ChatJID, "err", problem)
			o = Outcome{Decision: store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonBadRow,
				Error: problem}}
		}
	}()
	if daemon, ok := strings.CutPrefix(p.Service, "daemon:"); ok {
		return s.postDaemon(ctx, p, daemon, m)
	}
	o.Decision = store.Decision{Disposition: msg.Command, Reason: msg.ReasonCommand}
	switch p.Service {
	case decide.Dashd:
		o.Reply = s.askDashd(ctx, p, m)
	case decide.Gated:
		o.Reply, o.Revokes = s.answerCommand(ctx, p, m)
	default:
		o.Reply = s.askOnbod(ctx, m)
	}
	return o
}

// postDaemon posts a row to the daemon that its route names.
func (s *Services) postDaemon(ctx context.Context, p decide.AskService, name string, m *msg.Message) Outcome {
	failed := Outcome{Decision: store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonDaemonFailed}}
	client := s.Daemons[name]
	if client == nil {
		s.Log.Error("row dropped: its route names a daemon that DAEMONS does not have", "row", m.ID, "daemon", name)
		return failed
	}
	answer, err := postRow(ctx, client, daemonRequest{Message: wireMessage(m), RouteID: p.RouteID})
	if err != nil {
		s.Log.Error("row dropped: the daemon did not accept it", "row", m.ID, "daemon", name, "attempts",
			maxDaemonTries, "err", err)
		failed.Decision.Error = err.Error()
		return failed
	}
	return Outcome{Decision: store.Decision{Disposition: msg.Routed, Reason: msg.ReasonDaemon,
		RoutedTo: p.Service}, Reply: answer}
}

// postRow posts a row to a daemon until it accepts it, and returns the reply, if
// there is one.
func postRow(ctx context.Context, client *httpx.Client, body daemonRequest) (string, error) {
	var raw httpx.Raw
	var err error
	for try := range maxDaemonTries {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(try) * time.Second):
		}
		if err = Do(ctx, client, http.MethodPost, "", body, &raw); err != nil {
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

// daemonRequest is the body for the daemon of a route.
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

type serviceText struct {
	Text string `json:"text"`
}

// maxName bounds how much of a sender's name dashd gets, in bytes.
const maxName = 256

func (s *Services) askDashd(ctx context.Context, p decide.AskService, m *msg.Message) string {
	query := url.Values{
		"chat_jid": {m.ChatJID}, "thread_id": {m.ThreadID}, "topic": {m.Topic}, "sender": {m.Sender},
		"sender_name": {strings.ToValidUTF8(m.SenderName[:min(len(m.SenderName), maxName)], "")},
	}
	if p.Operator && m.Sender != msg.WebOperator { // the cost of agents is not for everyone in a chat
		query.Set("spend", "true")
	}
	method, path := http.MethodGet, "/status?"+query.Encode()
	// It was found to be a command of ours when it was decided.
	cmd, _ := layers.ParseCommand(m.Content, msg.FamilyOf(m.ChatJID), func(string) bool { return true })
	if cmd.Name == msg.CommandAlerts {
		method = http.MethodPost
		path = "/v1/alerts?" + url.Values{"by": {m.Sender}, "set": {strings.TrimSpace(cmd.Args)}}.Encode()
	}
	var answer serviceText
	err := Do(ctx, s.Dashd, method, path, nil, &answer)
	return serviceReply(answer.Text, err, dashdDown)
}

func (s *Services) askOnbod(ctx context.Context, m *msg.Message) string {
	platform := msg.FamilyOf(m.ChatJID)
	// It was found to be a command of ours when it was decided.
	cmd, _ := layers.ParseCommand(m.Content, platform, func(string) bool { return true })
	code, rest := strings.TrimSpace(cmd.Args), ""
	if end := strings.IndexFunc(code, unicode.IsSpace); end >= 0 {
		code, rest = code[:end], code[end:]
	}
	if code == "" {
		return "Which request? Write the code after the command, as in " +
			msg.CommandIn(m.ChatJID, cmp.Or(cmd.Name, msg.CommandApprove)+" ABCD-1234") + "."
	}
	body := map[string]string{"code": code, "by": m.Sender}
	if rest = strings.TrimSpace(rest); rest != "" {
		field := "folder"
		if cmd.Name == msg.CommandReject {
			field = "reason"
		}
		body[field] = rest
	}
	var answer serviceText
	err := Do(ctx, s.Onbod, http.MethodPost, "/"+cmd.Name, body, &answer)
	return serviceReply(answer.Text, err, onbodDown)
}

// Replies to users while a service does not answer.
const (
	dashdDown = "The status is unavailable: dashd is not responding. Try again later, or ask an operator to start it."
	onbodDown = "Requests cannot be approved or rejected: their service (onbod) is not answering. Nothing is lost; " +
		"try again later, or ask an operator to start it."
)

// serviceReply is the reply to the user: a service's answer, or down if there is none.
func serviceReply(text string, err error, down string) string {
	var f *apierr.Error
	switch {
	case err == nil && text != "":
		return text
	case err == nil:
		return "Done."
	case errors.As(err, &f) && f.Kind != apierr.Unavailable && f.Kind != apierr.Internal && !httpx.IsForeign(err):
		return f.Message
	}
	return down
}

// Do makes one call to another service.
func Do(ctx context.Context, client *httpx.Client, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return client.Do(ctx, method, path, in, out)
}

// Answers to /why; %s is the command, as it is written in the chat.
const (
	whyUsage   = "Which message? Write %[1]s as a reply to it, or %[1]s with its number."
	whyUnknown = "The message that you replied to is not stored: the bot did not receive it, " +
		"or it was deleted since. %s NUMBER works for any message."
	whyFailed = "The database cannot be read right now. Try again later."
)

// answerCommand answers a command that this process itself answers, and that takes many reads or a call. It also
// returns the permission rule that the command revokes.
func (s *Services) answerCommand(ctx context.Context, p decide.AskService, m *msg.Message) (reply string,
	revokes int64) {
	// It was found to be a command of ours when it was decided.
	cmd, _ := layers.ParseCommand(m.Content, msg.FamilyOf(m.ChatJID), func(string) bool { return true })
	args := strings.TrimSpace(cmd.Args)
	c := choice{Services: s, folder: p.Folder, chat: m.ChatJID, thread: m.ThreadID, operator: p.Operator, by: m.Sender,
		wanted: args}
	switch cmd.Name {
	case msg.CommandAgent:
		return c.answer(ctx, c.agent), 0
	case msg.CommandModel:
		return c.answer(ctx, c.model), 0
	case msg.CommandHooks:
		return c.answer(ctx, c.hooks), 0
	case msg.CommandWho:
		return s.who(ctx, p.Folder), 0
	case msg.CommandRules:
		return s.permissions(ctx, p, m, args)
	case msg.CommandSpend:
		return s.spend(ctx, p, m), 0
	}
	return s.explain(ctx, m, args), 0
}

// explain answers /why: the path of the message that the command replies to, or that it names.
func (s *Services) explain(ctx context.Context, m *msg.Message, args string) string {
	id, problem := s.asksAbout(ctx, m, args)
	if problem != "" {
		return problem
	}
	path, err := why.Read(ctx, s.Store, id)
	switch {
	case errors.Is(err, why.ErrNoMessage):
		return fmt.Sprintf("There is no message %d.", id)
	case err != nil:
		s.Log.Error("explaining a message failed", "row", id, "err", err)
		return whyFailed
	}
	return why.Brief(path, s.Now())
}

// asksAbout returns the message that a command asks about, or the problem of the command.
func (s *Services) asksAbout(ctx context.Context, m *msg.Message, args string) (id int64, problem string) {
	command := msg.CommandIn(m.ChatJID, msg.CommandWhy)
	if args != "" {
		id, err := strconv.ParseInt(strings.TrimPrefix(args, "#"), 10, 64)
		if err != nil || id <= 0 {
			return 0, fmt.Sprintf(whyUsage, command)
		}
		return id, ""
	}
	if m.ReplyToID == "" {
		return 0, fmt.Sprintf(whyUsage, command)
	}
	asked, err := s.Store.MessageByPlatformID(ctx, m.ChatJID, m.ReplyToID)
	switch {
	case err != nil:
		s.Log.Error("reading the message that a command replies to failed", "row", m.ID, "err", err)
		return 0, whyFailed
	case asked == nil:
		return 0, fmt.Sprintf(whyUnknown, command)
	}
	return asked.ID, ""
}
