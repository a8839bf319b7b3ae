package events

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/teled/internal/bot"
	"arizuko/teled/internal/inbound"
	"arizuko/teled/internal/telegramapi"
)

const (
	token   = "12345:secret-of-the-bot"
	chat    = "telegram:-5"
	timeout = 20 * time.Second
)

// fixture is a Bot API that answers getUpdates from a script, and a database. When the script has
// ended, the listener is stopped.
type fixture struct {
	t     *testing.T
	path  string
	store *store.Store
	me    int64 // the bot
	bots  adapter.Bots
	// convert, if not nil, replaces that of the listener.
	convert func(*telegramapi.Update, inbound.Self) (adapter.Inbound, error)

	mu       sync.Mutex
	batches  []string // results of getUpdates
	refuse   string   // the answer after them, "" to stop the listener
	username string   // of the bot
	admins   []string // answers to getChatAdministrators; the last one stays
	asked    int      // how often that was called
	offsets  []string // that getUpdates was called with
	answers  []string // to presses of buttons
	cursors  []string // that were stored when they came
	stop     context.CancelFunc
	metrics  *prometheus.Registry
	log      strings.Builder
	// onPoll, if not nil, is called for each batch before it is sent.
	onPoll func()
	now    func() time.Time
	// onLog, if not nil, is called for each line of the log.
	onLog func(line string)
}

func newFixture(t *testing.T, batches ...string) *fixture {
	path := storetest.Path(t)
	return &fixture{t: t, path: path, store: storetest.OpenAt(t, path, nil), me: 99, batches: batches, username: "arizuko_bot", now: time.Now,
		admins: []string{`{"ok":true,"result":[]}`}}
}

// ServeHTTP is the Bot API.
func (f *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/getMe"):
		fmt.Fprintf(w, `{"ok":true,"result":{"id":%d,"is_bot":true,"username":%q}}`, f.me, f.username)
	case strings.HasSuffix(r.URL.Path, "MyCommands"):
		fmt.Fprint(w, `{"ok":true,"result":[]}`)
	case strings.HasSuffix(r.URL.Path, "/answerCallbackQuery"):
		value, err := f.store.DaemonCursor(context.Background(), "teled", cursor)
		if err != nil {
			f.t.Error(err)
		}
		f.cursors = append(f.cursors, value)
		f.answers = append(f.answers, r.FormValue("callback_query_id")+" "+r.FormValue("text")+" "+r.FormValue("show_alert"))
		fmt.Fprint(w, `{"ok":false,"error_code":400,"description":"Bad Request: query is too old and response timeout expired or query ID is invalid"}`)
	case strings.HasSuffix(r.URL.Path, "/getChatAdministrators"):
		fmt.Fprint(w, f.admins[0])
		f.admins, f.asked = f.admins[min(1, len(f.admins)-1):], f.asked+1
	case !strings.HasSuffix(r.URL.Path, "/getUpdates"):
		f.t.Errorf("unexpected call of %s", r.URL.Path)
	case len(f.batches) > 0:
		if f.onPoll != nil {
			f.onPoll()
		}
		f.offsets = append(f.offsets, r.FormValue("offset"))
		fmt.Fprintf(w, `{"ok":true,"result":[%s]}`, f.batches[0])
		f.batches = f.batches[1:]
	case f.refuse != "":
		fmt.Fprint(w, f.refuse)
	default:
		f.offsets = append(f.offsets, r.FormValue("offset"))
		f.stop()
		<-r.Context().Done() // an empty answer before that would be an error of its own
	}
}

// Write implements io.Writer for the log.
func (f *fixture) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log.Write(line)
	if f.onLog != nil {
		f.onLog(string(line))
	}
	return len(line), nil
}

// listen runs the listener until the script ends, and returns its error.
func (f *fixture) listen() error {
	f.t.Helper()
	api := httptest.NewServer(f)
	defer api.Close()
	ctx, stop := context.WithTimeout(f.t.Context(), timeout)
	defer stop()
	f.stop, f.metrics = stop, prometheus.NewRegistry()
	log := slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client := telegramapi.NewClient(api.URL, token, adapter.NewCallClient())
	self := &bot.Bot{API: client, Store: f.store, Daemon: "teled", Log: log, Now: time.Now}
	l := &Listener{API: client, Bot: self, Store: f.store, convert: f.convert}
	shell := adapter.New(nil, adapter.Options{
		Platform: "telegram", Daemon: "teled", Listener: l, Store: f.store, Settings: adapter.Settings{Bots: f.bots}, Log: log, Metrics: f.metrics, Now: f.now,
		Heartbeat: daemon.NewHeartbeat("teled", "", log, func(context.Context, daemonrows.Daemon) error { return nil }),
	})
	err := l.Listen(ctx, shell)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.t.Fatalf("timeout; the log:\n%s", f.log.String())
	}
	return err
}

// run is listen for a script that ends without an error.
func (f *fixture) run() {
	f.t.Helper()
	if err := f.listen(); !errors.Is(err, context.Canceled) {
		f.t.Fatalf("the listener ended with %v", err)
	}
}

// exec runs a statement on a connection of its own.
func (f *fixture) exec(query string) {
	f.t.Helper()
	db, err := sql.Open("sqlite3", f.path+"?_busy_timeout=10000")
	if err != nil {
		f.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		f.t.Fatal(err)
	}
}

// expectStored compares the texts stored in the chat, and the stored offset.
func (f *fixture) expectStored(offset string, texts ...string) {
	f.t.Helper()
	rows, err := gatedtest.Undecided(context.Background(), f.store.Reader, chat, 0, 100)
	if err != nil {
		f.t.Fatal(err)
	}
	var got []string
	for _, m := range rows {
		got = append(got, m.Content)
	}
	if diff := cmp.Diff(texts, got); diff != "" {
		f.t.Errorf("stored (-want +got):\n%s\nthe log:\n%s", diff, f.log.String())
	}
	if value, err := f.store.DaemonCursor(context.Background(), "teled", cursor); value != offset || err != nil {
		f.t.Errorf("stored offset %q, %v, want %q", value, err, offset)
	}
}

func (f *fixture) expectOffsets(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.offsets); diff != "" {
		f.t.Errorf("getUpdates was called with offsets (-want +got):\n%s", diff)
	}
}

// skipped is the number of updates that could not be decoded.
func (f *fixture) skipped() float64 {
	f.t.Helper()
	return value(f.t, f.metrics, "arizuko_updates_undecoded_total")
}

// value is that of a counter or gauge without labels.
func value(t *testing.T, from prometheus.Gatherer, name string) float64 {
	t.Helper()
	all, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		if m := family.GetMetric(); family.GetName() == name {
			return m[0].GetCounter().GetValue() + m[0].GetGauge().GetValue() // one of them is nil
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// message is an update with a message of a user in the chat.
func message(update, id int, text string) string { return messageFrom(update, id, false, text) }

func messageFrom(update, id int, bot bool, text string) string {
	return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"date":1764000000,"chat":{"id":-5,"type":"group","title":"Team"},
		"from":{"id":7,"is_bot":%t,"first_name":"Alice"},"text":%q}}`, update, id, bot, text)
}

func TestListen_Updates_AreStoredWithTheOffset(t *testing.T) {
	f := newFixture(t, message(11, 1, "one")+","+message(12, 2, "two"), "", message(20, 3, "three"))
	f.run()
	f.expectStored("21", "one", "two", "three")
	f.expectOffsets("", "13", "13", "21")
	if log := f.log.String(); strings.Count(log, `msg=connected`) != 1 || strings.Count(log, `msg="event stored"`) != 3 {
		t.Errorf("the log:\n%s", log)
	}
}

// The number of a message, and what is read, say nothing about those of another bot. What belongs to the first one does so
// again once it is back.
func TestListen_AnotherBot_IsNoticedAndStoredBesideTheFirst(t *testing.T) {
	f := newFixture(t, message(700, 1, "my PIN is 1234"))
	f.exec(`INSERT INTO messages (chat_jid, platform_id, direction, sender, content, timestamp, received_at) VALUES ('` + chat + `', '2', 'in', 'telegram:7', 'before bots were stored', 1, 1)`)
	f.run()
	reply := `{"update_id":12,"message":{"message_id":2,"date":1764000000,"chat":{"id":-5,"type":"group"},"from":{"id":7},"text":"what is that?",
		"reply_to_message":{"message_id":1,"date":1764000000,"chat":{"id":-5,"type":"group"},"from":{"id":98,"is_bot":true},"text":"hello"}}}`
	f.me, f.offsets, f.batches = 98, nil, []string{reply}
	f.run()
	f.expectOffsets("", "13") // not from 701 on
	row, err := f.store.MessageByPlatformID(t.Context(), chat, "b98.2")
	if err != nil || row == nil || row.Verb != msg.VerbReply || row.ReplyToID != "b98.1" {
		t.Fatalf("the reply is %+v, %v", row, err)
	}
	answered, err := f.store.MessageByPlatformID(t.Context(), chat, row.ReplyToID)
	if err != nil || answered == nil || answered.Content != "hello" {
		t.Errorf("it answers %+v, %v", answered, err)
	}
	f.me, f.batches = 99, []string{message(701, 1, "my PIN is 1234") + "," + message(702, 3, "and back")}
	f.run()
	f.expectStored("703", "before bots were stored", "my PIN is 1234", "what is that?", "and back")
	if log := f.log.String(); strings.Count(log, "level=WARN msg=\"running as another bot") != 2 || !strings.Contains(log, "bot=98 before=99") {
		t.Errorf("the log:\n%s", log)
	}
	changes, err := factrows.Audit(t.Context(), f.store.Reader, factrows.AuditQuery{What: store.AuditBot, Limit: 9})
	if err != nil || len(changes) != 2 || changes[1].Who != "teled" || changes[1].Detail != "99 to 98" {
		t.Errorf("the audit: %+v, %v", changes, err)
	}
}

func TestListen_Restart_ContinuesAtTheStoredOffset(t *testing.T) {
	f := newFixture(t, message(11, 1, "one"))
	f.run()
	f.batches, f.offsets = []string{message(12, 2, "two")}, nil
	f.run()
	f.expectStored("13", "one", "two")
	f.expectOffsets("12", "13")
}

// Telegram sends an update again if teled ended before it asked for the next.
func TestListen_Redelivery_IsOneRow(t *testing.T) {
	f := newFixture(t, message(11, 1, "one")+","+message(12, 2, "two"), message(11, 1, "one")+","+message(12, 2, "two")+","+message(13, 3, "three"))
	f.run()
	f.expectStored("14", "one", "two", "three")
	if n := strings.Count(f.log.String(), `msg="duplicate event ignored"`); n != 2 {
		t.Errorf("%d duplicates logged:\n%s", n, f.log.String())
	}
}

// The offset that is stored with an update counts those before it as read: a kill between the two must not lose the older one.
func TestListen_ReorderedUpdates_KillBetweenThemLosesNone(t *testing.T) {
	updates := message(12, 2, "two") + "," + message(11, 1, "one")
	f := newFixture(t, updates)
	f.onLog = func(line string) {
		if strings.Contains(line, `msg="event stored"`) {
			f.stop()
		}
	}
	f.run()
	f.expectStored("12", "one")
	f.onLog, f.batches = nil, []string{message(12, 2, "two")}
	f.run()
	f.expectStored("13", "one", "two")
}

// Whichever of the two writes fails, neither is stored.
func TestListen_WriteFails_StoresNeitherRowNorOffset(t *testing.T) {
	for name, table := range map[string]string{"message": "messages", "offset": "cursors WHEN NEW.key = 'offset'"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, message(11, 1, "one")+","+message(12, 2, "two"))
			f.exec(`CREATE TRIGGER no BEFORE INSERT ON ` + table + ` BEGIN SELECT raise(ABORT, 'no'); END`)
			f.onLog = func(line string) {
				if strings.Contains(line, "storing event failed") {
					f.stop()
				}
			}
			f.run()
			f.expectStored("")
			f.expectOffsets("")

			f.exec(`DROP TRIGGER no`)
			f.onLog, f.batches = nil, []string{message(11, 1, "one") + "," + message(12, 2, "two")}
			f.run()
			f.expectStored("13", "one", "two")
		})
	}
}

func TestListen_UndecodableUpdates_AreSkippedAndCounted(t *testing.T) {
	f := newFixture(t, strings.Join([]string{
		message(11, 1, "one"),
		`{"update_id":12,"message":"not an object"}`,
		`{"update_id":13,"message":{"message_id":2,"chat":{"id":"five"}}}`,
		`{"update_id":14,"a_kind_that_came_later":{}}`, // which is not an error
		message(15, 3, "two"),
	}, ","))
	f.run()
	f.expectStored("16", "one", "two")
	if got := f.skipped(); got != 2 {
		t.Errorf("%v updates were counted", got)
	}
	if log := f.log.String(); !strings.Contains(log, `msg="undecodable event skipped" event="update 12"`) || !strings.Contains(log, `event="update 13"`) {
		t.Errorf("the log:\n%s", log)
	}
}

func TestListen_ConversionPanics_SkipsUpdate(t *testing.T) {
	f := newFixture(t, message(11, 1, "one")+","+message(12, 2, "bad")+","+message(13, 3, "two"))
	f.convert = func(u *telegramapi.Update, me inbound.Self) (adapter.Inbound, error) {
		if u.ID == 12 {
			panic("no such case")
		}
		return inbound.Convert(u, me)
	}
	f.run()
	f.expectStored("14", "one", "two")
	f.expectOffsets("", "14")
	if got := f.skipped(); got != 1 {
		t.Errorf("%v updates were counted", got)
	}
}

// Otherwise Telegram would send the same updates for ever.
func TestListen_UpdatesWithoutID_MoveTheOffset(t *testing.T) {
	f := newFixture(t, message(11, 1, "one"), `"not an object"`, `{"update_id":"13"}`, message(14, 2, "two"))
	f.run()
	f.expectStored("15", "one", "two")
	f.expectOffsets("", "12", "13", "14", "15")
}

// @BotFather may rename a bot while it is connected.
func TestListen_BotRenamed_NewNameIsAMention(t *testing.T) {
	const call = `{"update_id":%d,"message":{"message_id":%[1]d,"date":1764000000,"chat":{"id":-5,"type":"group"},"from":{"id":7,"first_name":"Alice"},
		"text":"@new_bot hi","entities":[{"type":"mention","offset":0,"length":8}]}}`
	f := newFixture(t, fmt.Sprintf(call, 11), fmt.Sprintf(call, 12))
	var later atomic.Int64
	f.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	f.onPoll = func() {
		if len(f.batches) == 1 {
			f.username = "new_bot"
			later.Store(int64(nameEvery))
		}
	}
	f.run()
	f.expectStored("13", "@new_bot hi", "hi")
	if log := f.log.String(); !strings.Contains(log, `msg="bot renamed" state=@new_bot`) {
		t.Errorf("the log:\n%s", log)
	}
}

func TestListen_Bots_AreStoredAsConfigured(t *testing.T) {
	for bots, want := range map[adapter.Bots][]string{
		adapter.NoBots: {"user"}, adapter.BotMentions: {"user"}, adapter.AllBots: {"bot", "user"},
	} {
		f := newFixture(t, messageFrom(11, 1, true, "bot")+","+message(12, 2, "user"))
		f.bots = bots
		f.run()
		f.expectStored("13", want...)
	}
}

func TestListen_Refused_ReturnsTheRemedy(t *testing.T) {
	for name, tt := range map[string]struct {
		code  int
		text  string
		class msg.ErrorClass
		after time.Duration
		want  string
	}{
		"another reader": {409, "Conflict: terminated by other getUpdates request", msg.Permanent, 30 * time.Second, "another program reads this bot's updates"},
		"webhook":        {409, "Conflict: can't use getUpdates method while webhook is active", msg.Permanent, 30 * time.Second, "deleteWebhook"},
		"token revoked":  {401, "Unauthorized", msg.Auth, 0, "TELEGRAM_BOT_TOKEN"},
		"rate limit":     {429, "Too Many Requests", msg.Rate, 5 * time.Second, "Too Many Requests"},
	} {
		f := newFixture(t, message(11, 1, "one"))
		f.refuse = fmt.Sprintf(`{"ok":false,"error_code":%d,"description":%q,"parameters":{"retry_after":%d}}`, tt.code, tt.text, 5*map[int]int{429: 1}[tt.code])
		err := f.listen()
		var failure *adapter.Failure
		if !errors.As(err, &failure) || failure.Class != tt.class || failure.After != tt.after || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s after %s with %q", name, err, tt.class, tt.after, tt.want)
		}
		if strings.Contains(fmt.Sprint(err, f.log.String()), token) {
			t.Errorf("%s: the token is in the error or the log", name)
		}
		f.expectStored("12", "one")
	}
}
