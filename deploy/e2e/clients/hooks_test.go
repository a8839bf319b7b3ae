package clients

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/testkit/need"
)

// startHooks makes an instance with dashd and a group for each kind of hook.
func startHooks(t *testing.T, kinds []groupconfig.HookKind) (*harness.Fixture, map[groupconfig.HookKind]*harness.Hook) {
	t.Helper()
	need.Verify(t)
	programs := harness.NewPrograms("", "arizuko/gated", "arizuko/routd", "arizuko/dashd", "arizuko/migrations/cmd/migrate",
		"arizuko/deploy/agents/demo")
	bin, err := programs.Bin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	f := harness.Start(t, programs, harness.Options{})
	f.Restart("dashd")
	all := map[groupconfig.HookKind]*harness.Hook{}
	for _, kind := range kinds {
		f.AddGroups(string(kind))
		all[kind] = f.AddHook(string(kind), kind)
	}
	return f, all
}

// The libraries of the senders sign for the hooks, with the secrets that `routd hooks add` prints, and verify our test
// deliveries.
func TestHooks_SendersLibraries_SignAndVerify(t *testing.T) {
	t.Parallel()
	kinds := []groupconfig.HookKind{groupconfig.HookGitHub, groupconfig.HookStripe, groupconfig.HookStandard}
	f, all := startHooks(t, kinds)
	var in []map[string]any
	for _, kind := range kinds {
		event, body, err := hooks.Sample(kind, "")
		f.OK(err)
		h, headers := all[kind], map[string]string{}
		for name, values := range hooks.Sign(h.Hook, h.Secret, event, "test-1", body, time.Now()) {
			headers[strings.ToLower(name)] = values[0]
		}
		in = append(in, map[string]any{"url": h.URL, "kind": kind, "secret": h.Secret, "body": string(body), "headers": headers})
	}
	list, err := json.Marshal(in)
	f.OK(err)
	b := startBot(t, "hooks.mjs", "HOOKS="+string(list))
	b.done(t, "end")
	for _, kind := range kinds {
		timed := http.StatusUnauthorized
		if kind == groupconfig.HookGitHub { // which signs no time
			timed = http.StatusAccepted
		}
		for name, status := range map[string]int{
			"right": http.StatusAccepted, "repeated": http.StatusAccepted, "with another secret": http.StatusUnauthorized,
			"changed": http.StatusUnauthorized, "old": timed, "of the future": timed,
		} {
			l := b.done(t, string(kind)+" "+name)
			if l["status"] != float64(status) {
				t.Errorf("%v, want %d", l, status)
			}
			if (name == "repeated") != strings.Contains(l.at("text"), `"repeated"`) {
				t.Errorf("%v", l)
			}
		}
		b.done(t, string(kind)+" verified")
		if l := b.wait(t, string(kind)+" not verified"); l["error"] == nil {
			t.Errorf("the library of %s verifies a changed body", kind)
		}
		want := "1"
		if kind == groupconfig.HookGitHub {
			want = "3"
		}
		if n := f.Value(`SELECT count(*) FROM messages WHERE direction = 'in' AND chat_jid = ?`, all[kind].Chat); n != want {
			t.Errorf("%s deliveries of %s are stored, want %s", n, kind, want)
		}
	}
}
