package tools

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/gated/internal/rows"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/chats"
	"arizuko/gated/internal/contextobjects"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const (
	folder      = "acme"
	chat        = "telegram:-1"
	foreignChat = "telegram:-2" // answered by the group other
)

// fixture is a server on a database with the groups acme, two below it, and other, of which acme has a
// run with an open turn. In the JSON of a tool's examples OWN_MESSAGE is the id of the
// turn's message, and FOREIGN_MESSAGE that of one in the other group's chat; likewise OWN_POLL and FOREIGN_POLL.
type fixture struct {
	t        *testing.T
	st       *store.Store
	tokens   *Tokens
	services *Services
	server   *httptest.Server
	metrics  *prometheus.Registry
	log      *buffer

	holdAnswers  bool // questions stay open
	loseAsks     bool // questions are not delivered
	access       *Access
	turn         *msg.Turn
	own, foreign *msg.Message
	// Of files_test.go: an answer of each group that is sent, and a message with a file.
	answer, foreignAnswer, file *msg.Message
	dir, data, path             string // folders of the group acme and of all data, and the database
	mu                          sync.Mutex
	drained                     []int64
	clock                       time.Time
	ownPoll, foreignPoll        int64 // ids of open polls
	ownReminder                 int64 // ids of active reminders
	foreignReminder             int64
	changes                     int // of reminders
	routd                       *fakeRoutd
}

func newFixture(t *testing.T, tools ...Tool) *fixture {
	t.Helper()
	path := storetest.Path(t)
	f := &fixture{t: t, st: storetest.OpenAt(t, path, nil), path: path, tokens: &Tokens{}, metrics: prometheus.NewRegistry(), log: &buffer{}, clock: time.UnixMilli(1_700_000_000_000)}
	f.services = &Services{Store: f.st, Runs: f, MediaDaily: 1 << 20, Now: func() time.Time { return f.clock }}
	f.services.Asks = f
	f.services.Log = slog.New(slog.NewTextHandler(f.log, nil))
	f.services.Objects = &contextobjects.Objects{Weights: contextobjects.DefaultWeights(), TTLs: contextobjects.TTLs{
		Medium: 2 * time.Hour, Media: time.Hour, Short: 20 * time.Minute, PollGrace: 15 * time.Minute, Max: 24 * time.Hour,
	}}
	f.services.Chats, f.services.Zone, f.services.Reminders = &chats.Chats{}, "UTC", f
	f.routd = newFakeRoutd(f)
	if tools == nil {
		tools = Registry()
	}
	f.server = httptest.NewServer(newHandler(f.tokens, f.services, slog.New(slog.NewTextHandler(f.log, nil)), f.metrics, tools))
	t.Cleanup(f.server.Close)
	f.write(func(tx *store.Tx) error {
		for _, name := range []string{folder, "acme/eng", "acme/no/deep", "other"} {
			if _, err := tx.PutGroup(&msg.Group{Folder: name, Name: name, CreatedAt: 1, Config: []byte("{}")}); err != nil {
				return err
			}
		}
		for jid, folder := range map[string]string{chat: folder, foreignChat: "other"} {
			if err := tx.PutRoute(&msg.Route{Match: "chat_jid=" + jid, Target: folder}); err != nil {
				return err
			}
		}
		return nil
	})
	f.own, f.turn, f.access = f.startRun(folder, chat, "who deploys?")
	var other *Access
	f.foreign, _, other = f.startRun("other", foreignChat, "a secret of others")
	other.Close()
	f.addFiles()
	f.ownPoll, f.foreignPoll = f.poll(folder, chat, "mine?"), f.poll("other", foreignChat, "a secret of others?")
	f.ownReminder, f.foreignReminder = f.reminder(folder, chat), f.reminder("other", foreignChat)
	return f
}

// parallel is newFixture for a test that runs beside others.
func parallel(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return newFixture(t)
}

// reminder stores an active reminder of a group in a chat.
func (f *fixture) reminder(folder, chat string) int64 {
	f.t.Helper()
	r := &msg.Reminder{
		Folder: folder, ChatJID: chat, Kind: msg.ReminderText, Body: "stand-up", Cron: "25 9 * * *", TimeZone: "UTC", Missed: msg.MissedOne,
		State: msg.ReminderActive, NextSlot: f.clock.UnixMilli() + 1000, CreatedAt: 1, UpdatedAt: 1,
	}
	f.write(func(tx *store.Tx) error { return rows.PutReminder(tx, r) })
	return r.ID
}

// Ask implements Asks: the question is answered at once, with its first option, unless answers are held.
func (f *fixture) Ask(t *msg.Turn, q *rows.Question, _ error, redact func(string) string) (a *msg.Ask, err error) {
	now := f.clock.UnixMilli()
	q.Question, q.Who, q.ExpiresAt = redact(q.Question), msg.Who{Everyone: true}, now+600_000
	err = f.st.Write(context.Background(), func(tx *store.Tx) error {
		if a, err = rows.PutAsk(tx, t, q, now); err != nil || f.holdAnswers || a.State != msg.AskOpen {
			return err
		}
		if f.loseAsks {
			return cmp.Or(tx.ClaimOutbound(a.MessageID, 1, now), tx.SettleOutbound(a.MessageID, msg.OutFailed, ""), rows.ExpireAsk(tx, a.ID, now))
		}
		return rows.AnswerAsk(tx, a.ID, 1, "telegram:7", "Ann", now, now)
	})
	return a, err
}

// AwaitAsk implements Asks.
func (f *fixture) AwaitAsk(ctx context.Context, id int64) (a *msg.Ask, err error) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		if a, err = f.st.Ask(ctx, id); err != nil || a.State != msg.AskOpen {
			return a, err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Changed is called when reminders change.
func (f *fixture) Changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes++
}

// poll stores an open poll of a group in a chat.
func (f *fixture) poll(folder, chat, question string) (id int64) {
	f.t.Helper()
	p := &msg.StoredPoll{Folder: folder, ChatJID: chat, Poll: msg.Poll{Question: question, Options: []string{"yes", "no"}}, CreatedAt: 1}
	f.write(func(tx *store.Tx) (err error) {
		m := &msg.Message{ChatJID: chat, Direction: msg.Out, Kind: msg.KindPoll, Content: p.Poll.JSON(), OutState: msg.OutCancelled}
		if p.MessageID, _, err = tx.PutMessage(m); err != nil {
			return err
		}
		return rows.PutPoll(tx, p)
	})
	return p.ID
}

// Drain implements Runs.
func (f *fixture) Drain(runID int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drained = append(f.drained, runID)
}

// startRun stores a message for a group and gives its turn to a new run.
func (f *fixture) startRun(folder, chat, text string) (*msg.Message, *msg.Turn, *Access) {
	f.t.Helper()
	m := f.ask(folder, chat, text)
	turn := storetest.Must(f.st.Turn(f.t.Context(), m.TurnID))(f.t)
	return m, turn, f.begin(msg.Run{Folder: folder, ChatJID: chat}, turn.ID)
}

// begin gives a turn to a new run.
func (f *fixture) begin(run msg.Run, turn int64) *Access {
	f.t.Helper()
	run.Runtime, run.StartedAt = "process", 1
	f.write(func(tx *store.Tx) error { return rows.StartRun(tx, &run, turn) })
	access := f.tokens.Issue(run, strings.NewReplacer("hunter2", "[redacted]").Replace)
	f.t.Cleanup(access.Close)
	access.Begin(turn, &groupconfig.Config{AssistantName: "ari", Observe: groupconfig.ObserveShared})
	access.SetTurn(turn)
	return access
}

// observe sets which other chats the run may read.
func (f *fixture) observe(o groupconfig.Observe) {
	f.access.Begin(f.turn.ID, &groupconfig.Config{AssistantName: "ari", Observe: o})
}

// ask stores a message of a chat, decided for a group with a turn of its own.
func (f *fixture) ask(folder, chat, text string) *msg.Message {
	f.t.Helper()
	m := &msg.Message{ChatJID: chat, Direction: msg.In, Content: text, Sender: "telegram:7", SenderName: "Bob", Timestamp: 1, ReceivedAt: 2, Source: "telegram"}
	f.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		t := &msg.Turn{Kind: msg.Conversation, Folder: folder, ChatJID: chat, TriggerMessageID: m.ID, Surface: "telegram-group", Ceiling: 1000, CreatedAt: 1}
		if _, err := rows.PutTurn(tx, t, 5); err != nil {
			return err
		}
		m.TurnID = t.ID
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: folder, TurnID: t.ID}, 3)
	})
	return m
}

// put stores messages.
func (f *fixture) put(all ...*msg.Message) {
	f.t.Helper()
	f.write(func(tx *store.Tx) error {
		for _, m := range all {
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *fixture) write(fn func(*store.Tx) error) {
	f.t.Helper()
	if err := f.st.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// client connects with a token.
func (f *fixture) client(token string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(f.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: f.server.URL + Path, HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err == nil {
		f.t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

// call calls a tool of the run with arguments in JSON, and returns the result's text.
func (f *fixture) call(tool, arguments string) (text string, isError bool) {
	f.t.Helper()
	return f.callAs(f.access, tool, arguments)
}

func (f *fixture) callAs(access *Access, tool, arguments string) (text string, isError bool) {
	f.t.Helper()
	session := storetest.Must(f.client(access.Token()))(f.t)
	result, err := session.CallTool(f.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: rawJSON(f.fill(arguments))})
	if err != nil {
		f.t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	return textOf(result), result.IsError
}

// works calls a tool that must succeed.
func (f *fixture) works(tool, arguments string) string {
	f.t.Helper()
	return f.worksAs(f.access, tool, arguments)
}

func (f *fixture) worksAs(access *Access, tool, arguments string) string {
	f.t.Helper()
	text, isError := f.callAs(access, tool, arguments)
	if isError {
		f.t.Fatalf("%s %s: %s", tool, arguments, text)
	}
	return text
}

// shows calls a tool that must succeed, and checks what its result has, and by not has not.
func (f *fixture) shows(tool, arguments string, parts ...string) {
	f.t.Helper()
	result := f.works(tool, arguments)
	for _, part := range parts {
		if text, without := strings.CutPrefix(part, notMark); strings.Contains(result, text) == without {
			f.t.Errorf("%s %s: %s, which %q is about", tool, arguments, result, part)
		}
	}
}

const notMark = "not: "

func not(part string) string { return notMark + part }

// refused calls a tool that must refuse with a text.
func (f *fixture) refused(tool, arguments, want string) {
	f.t.Helper()
	f.refusedAs(f.access, tool, arguments, want)
}

func (f *fixture) refusedAs(access *Access, tool, arguments, want string) {
	f.t.Helper()
	if text, isError := f.callAs(access, tool, arguments); !isError || !strings.Contains(text, want) {
		f.t.Errorf("%s %s: %v %q, want a refusal with %q", tool, arguments, isError, text, want)
	}
}

// outbound returns the messages that a turn has sent.
func (f *fixture) outbound() []*msg.Message {
	f.t.Helper()
	return storetest.Must(factrows.TurnReplies(f.t.Context(), f.st.Reader, f.turn.ID))(f.t)
}

// caller is the run that calls, for tests below the server.
func (f *fixture) caller(tool string) *Caller {
	f.t.Helper()
	return storetest.Must(f.services.caller(f.t.Context(), f.access, tool))(f.t)
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

type rawJSON string

func (j rawJSON) MarshalJSON() ([]byte, error) { return []byte(j), nil }

func textOf(result *mcp.CallToolResult) string {
	var all []string
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// cancelTurn does what a /stop does.
func (f *fixture) cancelTurn() {
	f.t.Helper()
	f.write(func(tx *store.Tx) error { return rows.CancelTurn(tx, f.turn.ID, msg.ReasonCancelled, 9) })
}

// fill puts the ids of the fixture into the arguments of an example.
func (f *fixture) fill(arguments string) string {
	return strings.NewReplacer(
		"OWN_MESSAGE", strconv.FormatInt(f.own.ID, 10), "FOREIGN_MESSAGE", strconv.FormatInt(f.foreign.ID, 10),
		"OWN_ANSWER", strconv.FormatInt(f.answer.ID, 10), "FOREIGN_ANSWER", strconv.FormatInt(f.foreignAnswer.ID, 10), "OWN_FILE", strconv.FormatInt(f.file.ID, 10),
		"OWN_REMINDER", strconv.FormatInt(f.ownReminder, 10), "FOREIGN_REMINDER", strconv.FormatInt(f.foreignReminder, 10),
		"OWN_POLL", strconv.FormatInt(f.ownPoll, 10), "FOREIGN_POLL", strconv.FormatInt(f.foreignPoll, 10),
		"OWN_CHAT", chat, "FOREIGN_CHAT", foreignChat,
	).Replace(arguments)
}
