package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/layers"
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
	// outageTime is how long dashd is not called for commands after it did not answer. onbod always is:
	// only operators can call it.
	outageTime = 5 * time.Second
)

// Services that answer commands; others are daemons that routes name. This process itself answers commands that take
// many reads.
const (
	dashd = "dashd"
	onbod = "onbod"
	own   = "gated"
)

// serviceOf names the service that answers a command.
func serviceOf(command string) string {
	switch command {
	case msg.CommandStatus:
		return dashd
	case msg.CommandWhy, msg.CommandAgent, msg.CommandModel:
		return own
	}
	return onbod
}

// pendingCall is a call to another service about a row. It keeps the id of the row, not the row:
// a backlog of calls must not fill the memory.
type pendingCall struct {
	row     int64
	service string // dashd, onbod, gated or daemon:NAME
	route   int64
	// Of a command: the chat's group, and whether an operator wrote it.
	folder   string
	operator bool
}

// calls are the calls to services that run and wait. Those of one chat to one service
// run one after another; services and chats take turns.
type calls struct {
	cfg     *Config
	st      *store.Store
	log     rowLog
	waits   *waits
	done    chan callDone
	daemons map[string]*httpx.Client
	lines   map[line]*[]pendingCall // waiting calls of a line of which one runs, or which is in ready
	ready   []line                  // with a call to start, longest first
	running int
	down    map[string]time.Time // services that did not answer, until when they are not called for commands
}

// line is where calls wait for each other.
type line struct{ chat, service string }

// callDone says that a row was taken care of.
type callDone struct {
	line
	row  int64
	down bool // the service did not answer
}

func newCalls(cfg *Config, st *store.Store, log rowLog, waits *waits) *calls {
	c := &calls{
		cfg: cfg, st: st, log: log, waits: waits, done: make(chan callDone), daemons: map[string]*httpx.Client{},
		lines: map[line]*[]pendingCall{}, down: map[string]time.Time{},
	}
	maps.Copy(c.daemons, cfg.Daemons)
	return c
}

func (s *calls) now() int64 { return s.cfg.Now().UnixMilli() }

// add lets another service decide a row. The row stays undecided until the
// answer is stored, so a crash in between repeats the call; the chat's other rows
// go on.
func (s *calls) add(ctx context.Context, c *chat, p pendingCall) {
	c.skip(p.row)
	l := line{c.jid, p.service}
	if waiting := s.lines[l]; waiting != nil {
		*waiting = append(*waiting, p)
		return
	}
	s.lines[l] = &[]pendingCall{p}
	s.ready = append(s.ready, l)
	s.start(ctx)
}

// start starts as many calls as may run.
func (s *calls) start(ctx context.Context) {
	for s.running < maxCalls && len(s.ready) > 0 {
		l := s.ready[0]
		s.ready = s.ready[1:]
		waiting := s.lines[l]
		p := (*waiting)[0]
		*waiting = (*waiting)[1:]
		s.running++
		skip := time.Now().Before(s.down[l.service])
		go func() {
			down := s.complete(ctx, p, skip)
			select {
			case s.done <- callDone{l, p.row, down}:
			case <-ctx.Done():
			}
		}()
	}
}

// finish takes back a row that a service has decided.
func (s *calls) finish(ctx context.Context, d callDone) {
	s.running--
	if d.down {
		s.down[d.service] = time.Now().Add(outageTime)
	}
	if waiting := s.lines[d.line]; len(*waiting) > 0 {
		s.ready = append(s.ready, d.line)
	} else {
		delete(s.lines, d.line)
	}
	s.start(ctx)
	if c := s.waits.chats[d.chat]; c != nil {
		delete(c.skipped, d.row)
		s.waits.add(c)
	}
}

// complete makes the call and stores its answer, retrying while the database
// fails. With skip dashd is not called: it did not answer lately.
func (s *calls) complete(ctx context.Context, p pendingCall, skip bool) (down bool) {
	var o *outcomeOfCall
	for ; ctx.Err() == nil; pause(ctx, dbRetryDelay) {
		m, err := s.st.Message(ctx, p.row)
		if err == nil && (m == nil || m.Disposition != "") {
			return false
		}
		if err == nil {
			if o == nil {
				answer := s.askService(ctx, p, m, skip)
				o = &answer
			}
			err = s.storeAnswer(ctx, m, o)
			if errors.Is(err, store.ErrRefused) {
				s.log.Error("row dropped: its service's answer cannot be stored", "row", p.row, "chat", m.ChatJID,
					"err", err)
				o.reply, o.decision = "", store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonBadRow,
					Error: err.Error()}
				err = s.storeAnswer(ctx, m, o)
			}
			if err == nil {
				s.log.serviceAnswered(m, &o.decision)
			}
		}
		if err == nil || errors.Is(err, store.ErrStale) {
			return o != nil && o.down
		}
		s.log.Error("storing service answer failed; retrying", "row", p.row, "err", err)
	}
	return false
}

// outcomeOfCall is how another service decides a row.
type outcomeOfCall struct {
	decision store.Decision
	reply    string
	down     bool
}

// askService calls the service. A panic costs the row.
func (s *calls) askService(ctx context.Context, p pendingCall, m *msg.Message, skip bool) (o outcomeOfCall) {
	defer func() {
		if cause := recover(); cause != nil {
			problem := fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())
			s.log.Error("row dropped: its service call panicked", "row", m.ID, "chat", m.ChatJID, "err", problem)
			o = outcomeOfCall{decision: store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonBadRow,
				Error: problem}}
		}
	}()
	if daemon, ok := strings.CutPrefix(p.service, "daemon:"); ok {
		return s.postDaemon(ctx, p, daemon, m)
	}
	o.decision = store.Decision{Disposition: msg.Command, Reason: msg.ReasonCommand}
	switch p.service {
	case dashd:
		o.reply, o.down = s.askDashd(ctx, p, m, skip)
	case own:
		o.reply = s.answerCommand(ctx, p, m)
	default:
		o.reply = s.askOnbod(ctx, m)
	}
	return o
}

func (s *calls) storeAnswer(ctx context.Context, m *msg.Message, o *outcomeOfCall) error {
	d := o.decision
	d.Topic, d.ThreadID = m.Topic, m.ThreadID
	return s.st.Write(ctx, func(tx *store.Tx) error {
		if err := tx.Decide(m.ID, d, s.now()); err != nil || o.reply == "" {
			return err
		}
		_, _, err := tx.PutMessage(replyMessage(m, msg.SourceCommand, o.reply, s.now()))
		return err
	})
}

// postDaemon posts a row to the daemon that its route names.
func (s *calls) postDaemon(ctx context.Context, p pendingCall, name string, m *msg.Message) outcomeOfCall {
	failed := outcomeOfCall{decision: store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonDaemonFailed}}
	client := s.daemons[name]
	if client == nil {
		s.log.Error("row dropped: its route names a daemon that DAEMONS does not have", "row", m.ID, "daemon", name)
		return failed
	}
	answer, err := postRow(ctx, client, daemonRequest{Message: wireMessage(m), RouteID: p.route})
	if err != nil {
		s.log.Error("row dropped: the daemon did not accept it", "row", m.ID, "daemon", name, "attempts",
			maxDaemonTries, "err", err)
		failed.decision.Error = err.Error()
		return failed
	}
	return outcomeOfCall{decision: store.Decision{Disposition: msg.Routed, Reason: msg.ReasonDaemon,
		RoutedTo: p.service}, reply: answer}
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

func (s *calls) askDashd(ctx context.Context, p pendingCall, m *msg.Message, skip bool) (text string, down bool) {
	if skip {
		return dashdDown, false
	}
	query := url.Values{
		"chat_jid": {m.ChatJID}, "thread_id": {m.ThreadID}, "topic": {m.Topic}, "sender": {m.Sender},
		"sender_name": {strings.ToValidUTF8(m.SenderName[:min(len(m.SenderName), maxName)], "")},
	}
	if p.operator && m.Sender != msg.WebOperator { // the cost of agents is not for everyone in a chat
		query.Set("spend", "true")
	}
	var answer serviceText
	err := call(ctx, s.cfg.Dashd, http.MethodGet, "/status?"+query.Encode(), nil, &answer)
	return serviceReply(answer.Text, err, dashdDown), isDown(err)
}

func (s *calls) askOnbod(ctx context.Context, m *msg.Message) (text string) {
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
	err := call(ctx, s.cfg.Onbod, http.MethodPost, "/"+cmd.Name, body, &answer)
	return serviceReply(answer.Text, err, onbodDown)
}

func isDown(err error) bool { return err != nil && apierr.KindOf(err) == apierr.Unavailable }

// Replies to users while a service does not answer.
const (
	dashdDown = "The status is unavailable: dashd is not responding. Try again later, or ask an operator to start it."
	onbodDown = "Requests cannot be approved or rejected: their service (onbod) is not answering. Nothing is lost; try again later, or ask an operator to start it."
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
