package onboarding

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// parallel is how many instances run at once.
const parallel = "3"

var programs = harness.NewPrograms("failpoints", "arizuko/onbod", "arizuko/routd", "arizuko/migrations/cmd/migrate")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, parallel)) }

const (
	operator = "telegram:99"
	family   = "telegram:-100"
)

// instance is an instance without gated: the test reports the chats.
type instance struct{ *harness.Fixture }

func start(t *testing.T) *instance {
	t.Helper()
	t.Parallel()
	f := harness.NewFixture(t, programs, harness.Options{Env: []string{"OPERATORS=" + operator}})
	f.Migrate()
	f.OK(f.Store.Write(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutChat(operator, msg.ChatDM, "Olga", 1); err != nil {
			return err
		}
		return tx.PutChat(family, msg.ChatGroup, "Family", 1)
	}))
	return &instance{f}
}

// call calls onbod, and reports whether it was killed meanwhile.
func (i *instance) call(path string, body, answer any) (killed bool) {
	i.T.Helper()
	err := i.Client(harness.Onbod).Do(i.T.Context(), http.MethodPost, path, body, answer)
	if err == nil {
		return false
	}
	if !strings.Contains(err.Error(), "does not answer") {
		i.T.Fatalf("%s: %v", path, err)
	}
	return true
}

// restart starts a daemon that was killed at its failpoint.
func (i *instance) restart(name string) {
	i.T.Helper()
	p := i.Instance.Process(name)
	i.Until(name+" to be killed", func() bool { return !p.Running() })
	if !p.Killed() {
		i.T.Fatalf("%s ended with %s, want killed", name, p.State())
	}
	i.Restart(name)
}

// ask reports the family's chat until it has a request.
func (i *instance) ask(restarted *bool) (code string) {
	i.T.Helper()
	for {
		var asked struct{ Code, State string }
		body := map[string]string{"chat_jid": family, "sender": "telegram:7", "sender_name": "Ada", "sample": "hello"}
		if !i.call("/v1/requests", body, &asked) {
			return asked.Code
		}
		i.restart(harness.Onbod)
		*restarted = true
	}
}

// wantConnected fails the test unless the chat was connected once.
func (i *instance) wantConnected(code string) {
	i.T.Helper()
	state := func() string { return i.Value(`SELECT state FROM onboarding_requests WHERE code = ?`, code) }
	i.Until("the approval to be finished", func() bool { return state() == "approved" })
	if all := i.Query(`SELECT code, folder, decided_by FROM onboarding_requests`); !slices.Equal(all, []string{code + " telegram-family " + operator}) {
		i.T.Errorf("requests: %q", all)
	}
	if groups := i.Query(`SELECT folder FROM registered_groups`); !slices.Equal(groups, []string{"telegram-family"}) {
		i.T.Errorf("groups: %q", groups)
	}
	want := []string{
		"chat_jid=" + family + " verb=mention telegram-family", "chat_jid=" + family + " verb=reply telegram-family",
		"chat_jid=" + family + " telegram-family#observe",
	}
	if routes := i.Query(`SELECT match, target FROM routes ORDER BY seq, id`); !slices.Equal(routes, want) {
		i.T.Errorf("routes: %q", routes)
	}
	if said := i.Query(`SELECT substr(content, 1, 25) FROM messages WHERE chat_jid = ? ORDER BY id`, family); !slices.Equal(said,
		[]string{"This chat is not connecte", "This chat is connected no"}) {
		i.T.Errorf("the chat's notices: %q", said)
	}
	if said := i.Query(`SELECT content FROM messages WHERE chat_jid = ?`, operator); len(said) != 1 || !strings.Contains(said[0], code) {
		i.T.Errorf("the operator's notices: %q", said)
	}
	wantAudit := []string{operator + " add group", operator + " add route", operator + " add route", operator + " add route", operator + " approve"}
	if audit := i.Query(`SELECT who, what FROM audit ORDER BY id`); !slices.Equal(audit, wantAudit) {
		i.T.Errorf("audit: %q", audit)
	}
}

// steps are the points of an approval, with the daemon that passes each.
func steps() map[fp.Point]string {
	all := map[fp.Point]string{
		fp.Connected: harness.Onbod, fp.ConnectChat.Before(): harness.Routd, fp.ConnectChat.After(): harness.Routd,
	}
	for _, v := range []fp.Verb{fp.PutRequest, fp.NoteApproval, fp.DecideRequest} {
		all[v.Before()], all[v.After()] = harness.Onbod, harness.Onbod
	}
	return all
}

// Wherever onbod or routd is killed, the next start finishes what was accepted: the request, the group,
// its routes and the greeting are there once.
func TestApproval_KilledAtEachStep_FinishedOnce(t *testing.T) {
	t.Parallel()
	for point, victim := range steps() {
		t.Run(string(point), func(t *testing.T) {
			i := start(t)
			other := harness.Routd
			if victim == other {
				other = harness.Onbod
			}
			i.Restart(other)
			i.Restart(victim, "FAILPOINT="+string(point))

			killed := false
			code := i.ask(&killed)
			if i.call("/approve", map[string]string{"code": code, "by": operator}, nil) {
				i.restart(victim)
				killed = true
				i.approveAgain(code)
			}
			if !killed { // routd: onbod has answered that it waits
				i.restart(victim)
			}
			i.wantConnected(code)
		})
	}
}

// approveAgain does what an operator does whose command was not answered, and finds what is stored.
func (i *instance) approveAgain(code string) {
	i.T.Helper()
	if i.Value(`SELECT state || ifnull(folder, '') FROM onboarding_requests WHERE code = ?`, code) == "pending" {
		i.call("/approve", map[string]string{"code": code, "by": operator}, nil)
	}
}

// A rejection is one transaction: it is stored with its notice, or not at all.
func TestRejection_Killed_SaidOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []fp.Point{fp.DecideRequest.Before(), fp.DecideRequest.After()} {
		t.Run(string(point), func(t *testing.T) {
			i := start(t)
			i.Restart(harness.Routd)
			i.Restart(harness.Onbod, "FAILPOINT="+string(point))
			code := i.ask(new(bool))
			reject := map[string]string{"code": code, "by": operator, "reason": "not ours"}
			if !i.call("/reject", reject, nil) {
				t.Fatal("onbod was not killed")
			}
			i.restart(harness.Onbod)
			if i.Value(`SELECT state FROM onboarding_requests WHERE code = ?`, code) == "pending" {
				i.call("/reject", reject, nil)
			}
			if said := i.Query(`SELECT content FROM messages WHERE chat_jid = ? AND content LIKE '%rejected%'`, family); len(said) != 1 {
				t.Errorf("notices: %q", said)
			}
		})
	}
}
