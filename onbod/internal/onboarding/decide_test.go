package onboarding

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/onbod/internal/rows"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

func TestApprove_ConnectsGreetsAndAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.chat(family, msg.ChatGroup, "Family")
	code := f.ask(family).Code
	d := f.approve(strings.ToLower(code), "")
	want := Decided{code, factrows.RequestApproved, "telegram-family", operator, "Connected `Family` (`telegram:-100`) to the new group telegram-family."}
	if d != want {
		t.Errorf("%+v, want %+v", d, want)
	}
	f.wantNotices(family, "This chat is not connected yet", "This chat is connected now: mention me")
	if r := f.request(code); r.State != factrows.RequestApproved || r.Folder != "telegram-family" || r.DecidedBy != operator || r.DecidedAt == 0 {
		t.Errorf("stored: %+v", r)
	}
}

func TestApprove_ExistingGroup_NamesWhoSharesIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.routd.shared = []string{"chat_jid=telegram:42", "chat_jid=telegram:42 verb=reply", "platform=slack verb=mention", "", `chat_jid=telegram:*`}
	d := f.approve(f.ask(family).Code, "main")
	want := "to the group main, which is there already. It shares files and sessions with the group's web chat, `Olga` (`telegram:42`), " +
		"messages that match `platform=slack verb=mention`, all chats, messages that match `chat_jid=telegram:*`."
	if !strings.HasSuffix(d.Text, want) {
		t.Errorf("%q, want %q", d.Text, want)
	}
}

func TestApprove_FolderBelowAnother_NamesThat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ok(f.st.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: "acme", Config: []byte(`{}`)})
		return err
	}))
	for folder, want := range map[string]string{
		"acme/eng": " to the new group acme/eng. It is below the group acme, whose chats reach it by @name.",
		"acne/eng": " to the new group acne/eng. There is no group acne above it.",
	} {
		if d := f.approve(f.ask("telegram:-"+strings.Map(func(r rune) rune { return '0' + r%10 }, folder)).Code, folder); !strings.HasSuffix(d.Text, want) {
			t.Errorf("%q, want %q", d.Text, want)
		}
	}
}

func TestDecide_Again_ConflictSaysWhoAndWhat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	approved, rejected := f.ask(family).Code, f.ask("telegram:8").Code
	f.approve(approved, "fam")
	_, err := f.Reject(t.Context(), Rejection{Code: rejected, Reason: "not **ours**\n", By: "web:operator"})
	f.ok(err)
	f.wantNotices("telegram:8", "This chat", "Request "+rejected+" was rejected. not **ours**")
	for code, text := range map[string]string{
		approved: "request " + approved + " was approved by telegram:42 at 20", rejected: "request " + rejected + " was rejected by web:operator at 20",
	} {
		for range 2 {
			_, approve := f.Approve(t.Context(), Approval{Code: code, Folder: "other", By: operator})
			_, reject := f.Reject(t.Context(), Rejection{Code: code, By: operator})
			for _, err := range []error{approve, reject} {
				if apierr.KindOf(err) != apierr.Conflict || !strings.HasPrefix(err.Error(), text) {
					t.Errorf("%v, want %s…", err, text)
				}
			}
		}
	}
	if f.routd.made != 1 {
		t.Errorf("%d connections", f.routd.made)
	}
}

func TestDecide_ByOperatorsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code := f.ask(family).Code
	for _, by := range []string{"", "telegram:4", ada, family, "web:", "web", "local:", "local:root", "Telegram:42"} {
		for _, code := range []string{code, "NONE-0000"} { // who may not decide does not learn which codes exist
			_, approve := f.Approve(t.Context(), Approval{Code: code, By: by})
			_, reject := f.Reject(t.Context(), Rejection{Code: code, By: by})
			for _, err := range []error{approve, reject} {
				if apierr.KindOf(err) != apierr.Forbidden {
					t.Errorf("%q: %v", by, err)
				}
			}
		}
	}
	f.byCode("telegram:5")
	for _, by := range []string{operator, "web:ada", LocalOperator, "telegram:5"} {
		if _, err := f.Approve(t.Context(), Approval{Code: "NONE-0000", By: by}); apierr.KindOf(err) != apierr.NotFound {
			t.Errorf("%q: %v", by, err)
		}
	}
	if r := f.request(code); r.State != factrows.RequestPending || r.Noted() {
		t.Errorf("stored: %+v", r)
	}
}

func TestApprove_InvalidFolder_BadRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code := f.ask(family).Code
	for _, folder := range []string{"../etc", "/etc", "Family", "a b", "a//b", strings.Repeat("a", 300)} {
		if _, err := f.Approve(t.Context(), Approval{Code: code, Folder: folder, By: operator}); apierr.KindOf(err) != apierr.BadRequest {
			t.Errorf("%q: %v", folder, err)
		}
	}
}

func TestApprove_RoutdRefuses_StillPending(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code := f.ask(family).Code
	for text, refuse := range map[string]error{
		"does not answer. Start it": errors.New("connection refused"), "is connected to": apierr.New(apierr.Conflict, "chat x is connected to the group y already"),
	} {
		f.routd.refuse = refuse
		_, err := f.Approve(t.Context(), Approval{Code: code, By: operator})
		if apierr.KindOf(err) != apierr.Conflict || !strings.Contains(err.Error(), "request "+code+" is still pending: ") || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
		if r := f.request(code); r.State != factrows.RequestPending || r.Noted() {
			t.Errorf("stored: %+v", r)
		}
	}
	f.routd.refuse = nil
	f.approve(code, "")
	f.wantNotices(family, "This chat is not", "This chat is connected")
}

func TestApprove_RoutdHangs_FinishedLater(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"nothing done": false, "answer lost": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			code := f.ask(family).Code
			f.routd.unanswered, f.routd.lost = !lost, lost
			d := f.approve(code, "fam")
			if d.State != factrows.RequestPending || !strings.Contains(d.Text, "as soon as routd answers") {
				t.Errorf("%+v", d)
			}
			f.routd.refuse = errors.New("connection refused") // it is down now: that says nothing about then
			if !f.sweepOnce() || len(f.noted) != 1 {
				t.Errorf("nothing waits; notes %q", f.noted)
			}
			_, other := f.Approve(t.Context(), Approval{Code: code, Folder: "other", By: "web:ada"})
			_, reject := f.Reject(t.Context(), Rejection{Code: code, By: "web:ada"})
			for _, err := range []error{other, reject} {
				if apierr.KindOf(err) != apierr.Conflict || !strings.Contains(err.Error(), "is being approved by telegram:42 into the group fam") {
					t.Errorf("meanwhile: %v", err)
				}
			}
			f.wantNotices(family, "This chat is not")
			f.routd.unanswered, f.routd.lost, f.routd.refuse = false, false, nil
			if f.sweepOnce() || len(f.noted) != 0 {
				t.Errorf("still waits; notes %q", f.noted)
			}
			f.sweepOnce()
			f.wantNotices(family, "This chat is not", "This chat is connected")
			if r := f.request(code); r.State != factrows.RequestApproved || r.DecidedBy != operator || f.routd.made != 1 {
				t.Errorf("%+v, %d connections", r, f.routd.made)
			}
		})
	}
}

// Another approves while the first approval waits: the same thing is finished.
func TestApprove_AgainWhileItWaits_Finishes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code := f.ask(family).Code
	f.routd.unanswered = true
	f.approve(code, "fam")
	f.routd.unanswered = false
	d, err := f.Approve(t.Context(), Approval{Code: code, By: "web:ada"})
	f.ok(err)
	if d.DecidedBy != operator || d.Folder != "fam" || d.State != factrows.RequestApproved {
		t.Errorf("%+v", d)
	}
	f.wantNotices(family, "This chat is not", "This chat is connected")
}

func TestApprove_RefusedLater_OperatorIsNotified(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code := f.ask(family).Code
	f.routd.unanswered = true
	f.approve(code, "fam")
	f.routd.unanswered = false
	f.routd.groups[family] = "main" // connected by hand meanwhile
	f.sweepOnce()
	f.wantNotices(operator, "Request "+code, "request "+code+" is still pending: chat telegram:-100 is connected to the group main")
	f.sweepOnce()
	if r := f.request(code); r.State != factrows.RequestApproved || r.DecidedBy != factrows.DecidedByRoutes || r.Folder != "main" {
		t.Errorf("%+v", r)
	}
	f.wantNotices(family, "This chat is not")
}

func TestDefaultFolder_ValidAndNew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	titles := map[string]string{
		"Family": "telegram-family", "  Ünïted Kïngdöm! ": "telegram-united-kingdom", "Семья": "telegram-sem-ia", "家庭": "telegram-jia-ting", "😀": "telegram-100", "_x_": "telegram-x", "Q&A": "telegram-qanda", "../../etc/passwd": "telegram-etc-passwd",
		"": "telegram-100", "---": "telegram-100", strings.Repeat("long ", 30): "telegram-long-long-long-long-long-long-long-long", "Żółć 2": "telegram-zolc-2",
	}
	for title, want := range titles {
		got := baseFolder(&factrows.Request{ChatJID: family, Title: title})
		if got != want || msg.ValidFolder(got) != nil {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
	if got := baseFolder(&factrows.Request{ChatJID: ada, Kind: msg.ChatDM, SenderName: "Ada L."}); got != "telegram-ada-l" {
		t.Errorf("a direct chat: %q", got)
	}
	if got := baseFolder(&factrows.Request{ChatJID: "telegram+work:-100", Title: "Family"}); got != "telegram-work-family" {
		t.Errorf("a further account: %q", got)
	}
	f.ok(f.st.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: "telegram-family", Config: []byte(`{}`)})
		return err
	}))
	f.ok(os.Mkdir(filepath.Join(f.cfg.Groups, "telegram-family-2"), 0o700)) // of a group that was removed
	f.routd.unanswered = true
	for _, jid := range []string{"telegram:-1", "telegram:-2"} {
		f.chat(jid, msg.ChatGroup, "Family")
	}
	first, second := f.approve(f.ask("telegram:-1").Code, ""), f.approve(f.ask("telegram:-2").Code, "")
	if first.Folder != "telegram-family-3" || second.Folder != "telegram-family-4" {
		t.Errorf("%s, %s", first.Folder, second.Folder)
	}
}

func TestApprove_RenamedChat_PresentTitleNamesTheFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.chat(family, msg.ChatGroup, "Family")
	code := f.ask(family).Code
	f.chat(family, msg.ChatGroup, "Book club")
	if d := f.approve(code, ""); d.Folder != "telegram-book-club" || !strings.Contains(d.Text, "`Book club`") {
		t.Errorf("%+v", d)
	}
}

func TestSweep_OldRequests_Expire(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code := f.ask(family).Code
	f.clock = f.clock.Add(167 * time.Hour)
	f.sweepOnce()
	if r := f.request(code); r.State != factrows.RequestPending {
		t.Errorf("too early: %+v", r)
	}
	f.clock = f.clock.Add(2 * time.Hour)
	f.sweepOnce()
	f.sweepOnce()
	f.wantNotices(family, "This chat is not", "Request "+code+" expired")
	if _, err := f.Approve(t.Context(), Approval{Code: code, By: operator}); apierr.KindOf(err) != apierr.Conflict || !strings.Contains(err.Error(), "expired at") {
		t.Errorf("approved late: %v", err)
	}
	if again := f.ask(family); !again.Created {
		t.Errorf("asked again: %+v", again)
	}
}

func TestSweep_RoutedByHand_EndsSilently(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer routeapi.Answer
		state  factrows.RequestState
		folder string
	}{
		"group":       {routeapi.Answer{Action: routeapi.Trigger, Folder: "main"}, factrows.RequestApproved, "main"},
		"observed":    {routeapi.Answer{Action: routeapi.Observe, Folder: "main"}, factrows.RequestApproved, "main"},
		"drop":        {routeapi.Answer{Action: routeapi.Builtin, Target: "builtin:drop"}, factrows.RequestExpired, ""},
		"daemon":      {routeapi.Answer{Action: routeapi.Daemon, Target: "daemon:crm"}, factrows.RequestExpired, ""},
		"onboarding":  {routeapi.Answer{Action: routeapi.Daemon, Target: "daemon:onbod"}, factrows.RequestPending, ""},
		"still none":  {routeapi.Answer{Action: routeapi.None}, factrows.RequestPending, ""},
		"unanswered":  {routeapi.Answer{Error: "no"}, factrows.RequestPending, ""},
		"no such row": {routeapi.Answer{}, factrows.RequestPending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			code := f.ask(family).Code
			f.routd.answers[family] = tt.answer
			f.sweepOnce()
			if r := f.request(code); r.State != tt.state || r.Folder != tt.folder || tt.state != factrows.RequestPending && r.DecidedBy != factrows.DecidedByRoutes {
				t.Errorf("%+v", r)
			}
			f.wantNotices(family, "This chat is not")
		})
	}
}

func TestSweep_OldDecidedRequests_Deleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	decided, pending := f.ask(family).Code, f.ask("telegram:8").Code
	f.approve(decided, "fam")
	f.cfg.TTL = 100 * 24 * time.Hour
	f.sweepOnce()
	f.clock = f.clock.Add(maxAge + time.Hour)
	f.sweepOnce()
	if r, err := rows.Request(t.Context(), f.st.Reader, decided); err != nil || r != nil {
		t.Errorf("%+v, %v", r, err)
	}
	f.request(pending)
}

func TestReopen_RejectedOrExpired_PendingAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code := f.ask(family).Code
	_, err := f.Reject(t.Context(), Rejection{Code: code, By: operator})
	f.ok(err)
	if _, err := f.Approve(t.Context(), Approval{Code: code, By: operator}); err == nil || !strings.Contains(err.Error(), "`onbod reopen "+code+"`") {
		t.Errorf("an approval says %v", err)
	}
	f.clock = f.clock.Add(200 * time.Hour) // longer than a request waits
	d, err := f.Reopen(t.Context(), Reopening{Code: strings.ToLower(code), By: LocalOperator})
	if err != nil || d.State != factrows.RequestPending || d.Code != code {
		t.Fatalf("%+v, %v", d, err)
	}
	f.sweepOnce()
	f.wantNotices(family, "This chat is not", "Request "+code+" was rejected.", "Request "+code+" waits for an operator again.")
	f.clock = f.clock.Add(169 * time.Hour)
	f.sweepOnce()
	if r := f.request(code); r.State != factrows.RequestExpired {
		t.Errorf("stored: %+v", r)
	}
	_, err = f.Reopen(t.Context(), Reopening{Code: code, By: operator})
	f.ok(err)
	f.approve(code, "fam")
	if r := f.request(code); r.State != factrows.RequestApproved || r.Reason != "" {
		t.Errorf("stored: %+v", r)
	}
}

func TestReopen_NotPossible_SaysWhy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pending, rejected, approved := f.ask("telegram:8").Code, f.ask(family).Code, f.ask("telegram:9").Code
	_, err := f.Reject(t.Context(), Rejection{Code: rejected, By: operator})
	f.ok(err)
	f.approve(approved, "")
	f.clock = f.clock.Add(25 * time.Hour)
	again := f.ask(family).Code
	for _, tc := range []struct {
		code, by, want string
		kind           apierr.Kind
	}{
		{pending, operator, "is pending", apierr.Conflict},
		{rejected, operator, "has made another request, " + again, apierr.Conflict},
		{approved, operator, "remove its routes", apierr.Conflict},
		{"NONE-0000", operator, "there is no request", apierr.NotFound},
		{rejected, ada, "is not an operator", apierr.Forbidden},
	} {
		if _, err := f.Reopen(t.Context(), Reopening{Code: tc.code, By: tc.by}); apierr.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s by %s: %v, want %q", tc.code, tc.by, err, tc.want)
		}
	}
}
