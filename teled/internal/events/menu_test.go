package events

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/bot"
	"arizuko/teled/internal/telegramapi"
)

// account is a listener of a fake Telegram, in a bubble.
type account struct {
	*fake.Server
	*Listener
	shell  *adapter.Shell
	client *http.Client
	log    strings.Builder
	notes  []string // of /readyz

	metrics *prometheus.Registry
}

func newAccount(t *testing.T, o fake.Options) *account {
	return newAccountBehind(t, o, func(api http.Handler) http.Handler { return api })
}

// newAccountBehind has something between the listener and the API.
func newAccountBehind(t *testing.T, o fake.Options, proxy func(api http.Handler) http.Handler) *account {
	t.Helper()
	a := &account{Server: fake.New(o), metrics: prometheus.NewRegistry()}
	n := nettest.Serve(t, proxy(a.Server))
	network := adapter.Network{Dial: n.Dial, TLS: n.TLS()}
	a.client = network.ListenClient()
	st := storetest.Open(t)
	log := slog.New(slog.NewTextHandler(&a.log, nil))
	api := telegramapi.NewClient("https://telegram.test", a.Token(), a.client)
	a.Listener = &Listener{API: api, Bot: &bot.Bot{API: api, Store: st, Daemon: "teled", Log: log, Now: time.Now}, Store: st}
	a.shell = adapter.New(nil, adapter.Options{
		Platform: "telegram", Daemon: "teled", Listener: a.Listener, Store: st, Log: log, Metrics: a.metrics, Now: time.Now,
		Note:      func(notes ...string) { a.notes = notes },
		Heartbeat: daemon.NewHeartbeat("teled", "", log, func(context.Context, rows.Daemon) error { return nil }),
	})
	return a
}

// listen runs the listener for a while.
func (a *account) listen(t *testing.T, d time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return a.Listen(ctx, a.shell)
}

func names(menu []fake.Command) (all []string) {
	for _, c := range menu {
		all = append(all, c.Command)
	}
	return all
}

func gatewayNames() (all []string) {
	for _, c := range msg.GatewayCommands() {
		all = append(all, c.Name)
	}
	return all
}

// setCalls is how often commands were set.
func (a *account) setCalls() int {
	return len(slices.DeleteFunc(a.Calls(), func(c fake.Call) bool { return c.Method != "setMyCommands" }))
}

func TestMenu_Connected_IsOfferedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, fake.Options{})
		alice := a.User("Alice", "alice")
		group := a.Supergroup("Team", alice)
		for range 2 {
			_ = a.listen(t, time.Minute)
			for where, menu := range map[string][]fake.Command{"DM": a.DM(alice).Menu(alice), "group": group.Menu(alice)} {
				if diff := cmp.Diff(gatewayNames(), names(menu)); diff != "" {
					t.Errorf("%s: %s\n%s", where, diff, a.log.String())
				}
			}
		}
		if n := a.setCalls(); n != 2 {
			t.Errorf("commands were set %d times, want once for each scope", n)
		}
	})
}

func TestMenu_CommandsOfOthers_Stay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, fake.Options{})
		alice := a.User("Alice", "alice")
		dm := a.DM(alice)
		a.SetCommands("default", "", fake.Command{Command: "shop", Description: "of the owner"}, fake.Command{Command: "help", Description: "the owner's words"})
		a.SetCommands("all_private_chats", "", fake.Command{Command: "bonus", Description: "of another program"})
		a.SetCommands("all_group_chats", "de", fake.Command{Command: "hilfe", Description: "in German"})
		expect := func(want ...string) {
			t.Helper()
			_ = a.listen(t, time.Minute)
			menu := dm.Menu(alice)
			if diff := cmp.Diff(append(gatewayNames(), want...), names(menu)); diff != "" {
				t.Errorf("%s\n%s", diff, a.log.String())
			}
			at := slices.IndexFunc(menu, func(c fake.Command) bool { return c.Command == "help" })
			if got := menu[at].Description; got != "the owner's words" {
				t.Errorf("the description of /help is %q", got)
			}
		}
		expect("shop", "bonus")
		a.SetCommands("default", "", fake.Command{Command: "help", Description: "the owner's words"})
		expect("bonus") // what teled had taken over goes with its original
		german := alice
		german.Language = "de"
		if got := names(a.Supergroup("Team", german).Menu(german)); !slices.Equal(got, []string{"hilfe"}) {
			t.Errorf("in German: %v", got)
		}
	})
}

func TestMenu_ServerWithoutCommands_ListensOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, fake.Options{Lacks: []string{"setMyCommands", "getMyCommands"}})
		_ = a.listen(t, time.Minute)
		if log := a.log.String(); !strings.Contains(log, "offering commands failed") || a.GetUpdatesCalls() < 10 {
			t.Errorf("%d polls\n%s", a.GetUpdatesCalls(), log)
		}
	})
}

func TestMenu_SetCommandsFails_CursorDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, fake.Options{Lacks: []string{"setMyCommands"}})
		for range 3 {
			_ = a.listen(t, time.Minute)
		}
		kept, err := a.Store.DaemonCursor(t.Context(), "teled", "menu:all_group_chats")
		if n := strings.Count(kept, `"command"`); err != nil || n != len(msg.GatewayCommands()) {
			t.Errorf("%d commands are kept, %v: %s", n, err, kept)
		}
	})
}

func TestMenuOf_TooMany_KeepsGatewayCommands(t *testing.T) {
	var many []command
	for i := range maxCommands {
		many = append(many, command{"c" + string(rune('a'+i%26)) + strings.Repeat("x", i/26), "x"})
	}
	menu, _ := menuOf(nil, nil, many)
	if len(menu) != maxCommands || menu[0].Command != msg.CommandNew {
		t.Errorf("%d commands, first %+v", len(menu), menu[0])
	}
}

// A poll that is never answered, on a connection that works otherwise, is given up soon after its own time.
func TestListen_PollIsNeverAnswered_EndsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		a := newAccountBehind(t, fake.Options{}, func(api http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/getUpdates") {
					if polls++; polls > 2 {
						<-r.Context().Done()
						return
					}
				}
				api.ServeHTTP(w, r)
			})
		})
		began := time.Now()
		err := a.listen(t, time.Hour)
		if took := time.Since(began); err == nil || took > 2*pollTimeout+adapter.ConnectTimeout+time.Second {
			t.Errorf("ended after %v with %v", took, err)
		}
	})
}

// Some servers answer an empty poll at once.
func TestListen_ServerDoesNotWait_PollsOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, fake.Options{})
		a.InjectFault(fake.Fault{Method: "getUpdates", Body: `{"ok":true,"result":[]}`, Times: -1})
		_ = a.listen(t, time.Minute)
		if n := a.GetUpdatesCalls(); n < 50 || n > 62 {
			t.Errorf("%d polls in a minute", n)
		}
	})
}

// gated reads in one cursor how large files may be, and the answer to /status in the other what the bot receives in
// groups.
func TestListen_FactsAboutTheServer_AreNotedWhileTheyHold(t *testing.T) {
	for key, set := range map[string]func(a *account, on bool){
		msg.LocalServer: func(a *account, on bool) { a.Local = on },
		msg.PrivacyMode: func(a *account, on bool) { a.SetPrivacy(on) },
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newAccount(t, fake.Options{Local: true})
			for _, on := range []bool{false, true, true, false, true} {
				set(a, on)
				_ = a.listen(t, time.Second)
				if value, err := a.Store.DaemonCursor(t.Context(), "teled", key); err != nil || (value != "") != on {
					t.Errorf("%s %t: %q, %v", key, on, value, err)
				}
			}
		})
	}
}

// Telegram lets the last poll win: one that returns at once would always be answered.
func TestListen_AnotherReader_IsNotCalledConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, fake.Options{})
		other := telegramapi.NewClient("https://telegram.test", a.Token(), a.client)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				_ = other.Call(ctx, "getUpdates", telegramapi.Params{"timeout": int64(3)}, nil)
				adapter.Pause(ctx, time.Second)
			}
		}()
		for range 3 {
			if err := a.listen(t, time.Minute); err == nil || !strings.Contains(err.Error(), "another program") {
				t.Fatalf("ended with %v", err)
			}
		}
		if n := strings.Count(a.log.String(), "msg=connected"); n > 1 {
			t.Errorf("connected %d times\n%s", n, a.log.String())
		}
		cancel()
		_ = a.listen(t, 30*time.Second)
	})
}
