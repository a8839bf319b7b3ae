package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/routd/internal/api"
	"arizuko/routd/internal/cli"
	"arizuko/routd/internal/engagement"
	"arizuko/routd/internal/routing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture runs command lines against routd's API on its own database file.
type fixture struct {
	client *httpx.Client
	st     *store.Store
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	st, log := storetest.Open(t), slog.New(slog.DiscardHandler)
	loader, err := routing.Open(t.Context(), st, msg.DefaultImpulse(100, 5*time.Minute), func(*routing.Table) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { loader.Close() })
	tracker, err := engagement.Open(t.Context(), st, time.Minute, time.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	router := chi.NewRouter()
	a := api.API{
		Store: st, Loader: loader, Engagement: tracker, TTL: time.Minute, Log: log,
		Resolved: api.Resolved(prometheus.NewRegistry()), Now: time.Now,
	}
	a.Mount(router)
	server := httptest.NewServer(router)
	client := httpx.NewClient("routd", server.URL, "")
	t.Cleanup(func() {
		client.HTTP.CloseIdleConnections()
		server.Close()
	})
	return &fixture{client: client, st: st}
}

// run runs one command line and returns what it prints.
func (f *fixture) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	commands := cli.Commands(func() (*httpx.Client, error) { return f.client, nil })
	err := commands[args[0]](ctx, args[1:], &out)
	return out.String(), err
}

func TestCommands_Output(t *testing.T) {
	f := newFixture(t)
	for _, step := range []struct {
		args []string
		want string // a part of the output, lines with their spaces collapsed
	}{
		{[]string{"groups", "list"}, "no groups: add one"},
		{[]string{"routes", "list"}, "no routes: add one"},
		{[]string{"groups", "add", "main", "--if-none"}, "group main is registered"},
		{[]string{"groups", "add", "other", "--if-none"}, ""},
		{[]string{"groups", "show", "main"}, "folder: main"},
		{[]string{"groups", "rm", "main"}, "removed group main"},
		{[]string{"groups", "add", "acme/eng", "--name", "Eng \x1b[2J", "--config", `{"observe":"none"}`}, "group acme/eng is registered"},
		{[]string{"groups", "add", "--name=Acme", "acme"}, "group acme is registered"},
		{[]string{"groups", "add", "--name=Acme", "acme"}, "group acme is registered"},
		{[]string{"groups", "set", "acme", "--config", `{"agent":{"model":"m"}}`}, "group acme is changed"},
		{[]string{"groups", "show", "acme"}, "folder: acme\nname: Acme\n"},
		{[]string{"groups", "show", "acme"}, "config: {\n\"agent\": {\n\"model\": \"m\"\n}\n}\n"},
		{[]string{"groups", "set", "acme", "--agent", "codex"}, "group acme is changed"},
		{[]string{"groups", "show", "acme"}, "config: {\n\"agent\": {\n\"name\": \"codex\"\n}\n}\n"},
		{[]string{"groups", "set", "acme", "--agent", "default", "--model", "m"}, "group acme is changed"},
		{[]string{"groups", "show", "acme"}, "config: {\n\"agent\": {\n\"model\": \"m\"\n}\n}\n"},
		{[]string{"groups", "set", "acme", "--name="}, "group acme is changed"},
		{[]string{"groups", "show", "acme"}, "name: -\n"},
		{[]string{"groups", "show", "acme"}, "\"model\": \"m\""},
		{[]string{"routes", "add", "--seq", "10", "--match", "platform=telegram verb=mention", "--target", "acme/eng"}, "added route 1"},
		{[]string{"routes", "add", "-target=acme#observe", "-seq=20", `-impulse={"quiet_ms":5}`}, "added route 2\nwarning: route 2 (everything) only observes, but lets any user reach group acme by a text"},
		{[]string{"groups", "list"}, "acme/eng Eng ?[2J 20"},
		{[]string{"routes", "list"}, "ID SEQ MATCH TARGET IMPULSE\n" +
			"1 10 platform=telegram verb=mention acme/eng -\n" +
			`2 20 (everything) acme#observe {"quiet_ms":5}` + "\n"},
		{[]string{"routes", "test", "--chat", "telegram:-1", "--sender", "telegram:7", "--sender-name", "Ann"}, "action observe\n" +
			"target acme#observe\nreason route_observe\nhome acme\nsurface telegram-group, about 1500 characters\n" +
			`why route 1: verb=mention does not match "message"` + "\nroute 2 (everything) leads to acme#observe\n"},
		{[]string{"routes", "test", "--chat", "telegram:-1", "--verb", "mention", "--thread", "5"}, "surface telegram-topic"},
		{[]string{"routes", "test", "--chat", "telegram:-1"}, "\nwarnings route 1 (platform=telegram verb=mention) lets any user reach group acme/eng;"},
		{[]string{"routes", "add", "--match", "sender=telegram:42", "--target", "acme"}, "added route 3\n"},
		{[]string{"routes", "rm", "3"}, "removed route 3\n"},
		{[]string{"routes", "test", "--chat", "telegram:-1", "--kind", "dm", "--sticky", "acme"}, "reason sticky_target"},
		{[]string{"access", "telegram:-1", "telegram:7"}, "chat telegram:-1 (group)\nsender telegram:7, no operator\n" +
			"message is observed by acme: route 2 (everything) leads to acme#observe\n" +
			"mention starts a turn of acme/eng (at most 60 an hour): route 1 (platform=telegram verb=mention) leads to acme/eng\n" +
			"reply is observed by acme: route 2 (everything) leads to acme#observe\n" +
			"group acme\nrole ask everyone\nrole approve operators, and in a direct message its user\nrole operate operators; until it is set, everyone may stop\ncommands /new, /stop, /status, /who\n@name acme/eng\npin may pin the chat\n"},
		{[]string{"groups", "set", "acme", "--config", `{"access":["telegram:42"],"pin":"operators","reach":"none"}`}, "changed"},
		{[]string{"access", "telegram:-1", "telegram:7"}, "message is dropped (no_access), since the role ask of acme does not list the sender: route 2"},
		{[]string{"access", "telegram:-1", "telegram:7"}, "group acme: the sender may do nothing here but /ping, /chatid, /help\nrole ask operators and telegram:42\n"},
		{[]string{"access", "telegram:-1", "telegram:42"}, "@name no other group\npin may not pin the chat: only operators may\n"},
		{[]string{"groups", "set", "acme", "--config", `{}`}, "go by that\nwarning: route 2 (everything) only observes, but"},
		{[]string{"routes", "rm", "1", "2"}, "removed route 1\nremoved route 2\n"},
		{[]string{"groups", "rm", "acme/eng", "acme"}, "removed group acme/eng\nremoved group acme\n"},
	} {
		out, err := f.run(t.Context(), step.args...)
		var lines []string
		for line := range strings.Lines(out) {
			lines = append(lines, strings.Join(strings.Fields(line), " ")+"\n")
		}
		if got := strings.Join(lines, ""); err != nil || !strings.Contains(got, step.want) {
			t.Errorf("routd %q: %v\n%s\nwant\n%s", step.args, err, got, step.want)
		}
	}
}

func TestCommands_UsageErrors(t *testing.T) {
	f := newFixture(t)
	for _, tc := range []struct {
		args  []string
		want  string
		usage bool // it is refused before routd is asked
	}{
		{[]string{"routes"}, "usage: routd routes list | add | rm | test", true},
		{[]string{"groups", "rename"}, "usage: routd groups list | show | add | set | rm", true},
		{[]string{"routes", "list", "all"}, `unexpected argument "all"`, true},
		{[]string{"routes", "add"}, "--target is missing", true},
		{[]string{"routes", "add", "--target", "acme", "--weight", "1"}, "-weight", true},
		{[]string{"routes", "add", "--target", "acme", "--seq", "first"}, "seq", true},
		{[]string{"routes", "add", "--target", "acme", "--impulse", "{"}, "is not JSON", true},
		{[]string{"routes", "add", "--target", "acme"}, "folder acme is not registered", false},
		{[]string{"routes", "rm"}, "ID is missing", true},
		{[]string{"routes", "rm", "../groups/acme"}, "is not a route id", true},
		{[]string{"routes", "rm", "77"}, "there is no route 77", false},
		{[]string{"access", "telegram:1"}, "want a chat and a sender", true},
		{[]string{"access", "telegram:1", "Ann"}, "sender \"Ann\" is not platform:user", false},
		{[]string{"access", "1", "telegram:1"}, "is not platform:room", false},
		{[]string{"routes", "test"}, "--chat is missing", true},
		{[]string{"routes", "test", "--chat", "7"}, "platform:room", false},
		{[]string{"groups", "add"}, "FOLDER is missing", true},
		{[]string{"groups", "add", "a", "b"}, `unexpected argument "b"`, true},
		{[]string{"groups", "add", "Acme"}, "folder", false},
		{[]string{"groups", "add", "acme", "--config", "x"}, "is not JSON", true},
		{[]string{"groups", "add", "acme", "--config", `{"agnet":{}}`}, "did you mean agent?", false},
		{[]string{"groups", "show"}, "FOLDER is missing", true},
		{[]string{"groups", "show", "gone"}, "there is no group", false},
		{[]string{"groups", "set", "gone", "--name", "x"}, "there is no group", false},
		{[]string{"groups", "set", "gone", "--config", "{"}, "is not JSON", true},
		{[]string{"groups", "set", "gone", "--config", "{}", "--agent", "x"}, "--config replaces the agent and model", true},
		{[]string{"groups", "rm"}, "FOLDER is missing", true},
		{[]string{"groups", "rm", "../routes/1"}, "there is no group", false},
	} {
		_, err := f.run(t.Context(), tc.args...)
		var exit *daemon.ExitError
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.As(err, &exit) != tc.usage {
			t.Errorf("routd %q: %v, want %q", tc.args, err, tc.want)
		}
	}
}

func TestCommands_Help_PrintsUsage(t *testing.T) {
	f := newFixture(t)
	for command, want := range map[string]string{"routes add -h": "-impulse", "groups list --help": "usage: routd groups list\n",
		"groups --help": "usage: routd groups rm FOLDER", "routes -h": "usage: routd routes add "} {
		out, err := f.run(t.Context(), strings.Fields(command)...)
		if !errors.Is(err, flag.ErrHelp) || !strings.Contains(out, want) {
			t.Errorf("routd %s: %v\n%s", command, err, out)
		}
	}
}

func TestCommands_NoClient_Error(t *testing.T) {
	missing := errors.New("no secret")
	commands := cli.Commands(func() (*httpx.Client, error) { return nil, missing })
	if err := commands["routes"](t.Context(), []string{"list"}, io.Discard); !errors.Is(err, missing) {
		t.Errorf("got %v", err)
	}
}

func TestCommands_NotRunning_SaysHowToStart(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	f := &fixture{client: httpx.NewClient("routd", server.URL, "")}
	_, err := f.run(t.Context(), "routes", "list")
	var exit *daemon.ExitError
	if err == nil || !strings.Contains(err.Error(), "routd is not running at "+server.URL) || errors.As(err, &exit) {
		t.Errorf("got %v", err)
	}
}

// A row that was written by SQL is shown with its problems.
func TestGroupsShow_InvalidConfig_Problems(t *testing.T) {
	f := newFixture(t)
	odd := msg.Group{Folder: "odd", Config: json.RawMessage(`{"observe":7,"limits":{"pids":1}}`)}
	err := f.st.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.PutGroup(&odd); return err })
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.run(t.Context(), "groups", "show", "odd")
	for _, want := range []string{"\"pids\": 1\n", "\nproblem: limits.pids: must be a number from 4", "\nproblem: observe: must be a text\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: no %q in\n%s", err, want, out)
		}
	}
}
