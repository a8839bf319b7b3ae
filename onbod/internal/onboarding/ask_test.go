package onboarding

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/chatmove"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestAsk_UnknownChat_OneRequestAndOneNoticeEach(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.chat(family, msg.ChatGroup, "Family")
	first := f.ask(family)
	if !first.Created || first.State != factrows.RequestPending || !regexp.MustCompile(`^[A-HJ-NP-Z]{4}-\d{4}$`).MatchString(first.Code) {
		t.Errorf("first: %+v", first)
	}
	for range 3 {
		if again := f.ask(family); again.Created || again.Code != first.Code || again.State != factrows.RequestPending {
			t.Errorf("again: %+v", again)
		}
	}
	f.wantNotices(family, "This chat is not connected yet. Request "+first.Code+" was sent to the operators.")
	f.wantNotices(operator, "Request "+first.Code+": `Ada` (`telegram:7`) wrote in the group chat `Family` (`telegram:-100`)")
	if r := f.request(first.Code); r.Kind != msg.ChatGroup || r.Sample != "hello" || r.Sender != ada || r.CreatedAt != f.clock.UnixMilli() {
		t.Errorf("stored: %+v", r)
	}
}

func TestAsk_AtOnce_OneRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var group sync.WaitGroup
	codes := make(chan string, 20)
	for range cap(codes) {
		group.Go(func() {
			done, err := f.Ask(t.Context(), onboardapi.Ask{ChatJID: family, Sender: ada})
			if err != nil {
				t.Error(err)
			}
			codes <- done.Code
		})
	}
	group.Wait()
	close(codes)
	first := <-codes
	for code := range codes {
		if code != first {
			t.Errorf("codes %s and %s", first, code)
		}
	}
	f.wantNotices(family, "This chat")
}

func TestAsk_OperatorsDirectChats(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.chat("slack:D5", msg.ChatDM, "")
	_, _, err := storetest.Put(t.Context(), f.st, &msg.Message{ChatJID: "slack:D5", Direction: msg.In, Sender: "slack:U1"})
	f.ok(err)
	done := f.ask(family)
	for jid, sign := range map[string]string{operator: "/", "slack:D5": "!"} { // Slack refuses commands that its app does not register
		f.wantNotices(jid, "Request "+done.Code)
		text := f.notices(jid)[0]
		for _, command := range []string{"approve " + done.Code, "approve " + done.Code + " FOLDER", "reject " + done.Code + " REASON"} {
			if !strings.Contains(text, "`"+sign+command+"`") {
				t.Errorf("in %s without %s%s: %s", jid, sign, command, text)
			}
		}
	}
}

// An operator's own first message, in a chat that is not connected.
func TestAsk_ByOperator_OneNotice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	done := f.ask(operator)
	f.wantNotices(operator, "Request "+done.Code)
}

func TestAsk_OperatorBlocksTheBot_NoNoticeClaimsOtherwise(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, _, err := storetest.Put(t.Context(), f.st, &msg.Message{ChatJID: operator, Direction: msg.In, Sender: operator, Verb: msg.VerbLeave})
	f.ok(err)
	done := f.ask(family)
	f.wantNotices(operator)
	f.wantNotices(family, "This chat is not connected yet. Request "+done.Code+" waits for an operator.")
}

func TestAsk_Rejected_NotForADay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.ask(family)
	_, err := f.Reject(t.Context(), Rejection{Code: first.Code, By: operator})
	f.ok(err)
	for _, after := range []time.Duration{0, 23 * time.Hour} {
		f.clock = f.clock.Add(after)
		if got := f.ask(family); got != (onboardapi.Asked{Code: first.Code, State: factrows.RequestRejected}) {
			t.Errorf("%s later: %+v", after, got)
		}
	}
	f.clock = f.clock.Add(2 * time.Hour)
	if got := f.ask(family); !got.Created || got.Code == first.Code {
		t.Errorf("after a day: %+v", got)
	}
}

// A message that passed the approval of its chat on its way.
func TestAsk_JustApproved_NoNewRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.ask(family)
	f.approve(first.Code, "fam")
	if got := f.ask(family); got != (onboardapi.Asked{Code: first.Code, State: factrows.RequestApproved}) {
		t.Errorf("at once: %+v", got)
	}
	f.clock = f.clock.Add(2 * time.Minute) // its routes were removed
	if got := f.ask(family); !got.Created {
		t.Errorf("later: %+v", got)
	}
}

func TestAsk_BeyondLimits_NothingStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ask := func(i int, sender string) onboardapi.Asked {
		done, err := f.Ask(t.Context(), onboardapi.Ask{ChatJID: fmt.Sprintf("telegram:-%d", i), Sender: sender})
		f.ok(err)
		return done
	}
	for i := range 7 {
		if got := ask(i, ada); got.Created != (i < 5) || (got.State == onboardapi.Limited) != (i >= 5) || (got.Code == "") != (i >= 5) {
			t.Errorf("request %d of one sender: %+v", i, got)
		}
	}
	for i := range 17 {
		if got := ask(100+i, fmt.Sprintf("discord:%d", i)); got.Created != (i < 15) {
			t.Errorf("request %d of all: %+v", i+5, got)
		}
	}
	f.clock = f.clock.Add(-time.Hour) // the clock is set back: times ahead do not count
	if got := ask(8, ada); !got.Created {
		t.Errorf("with the clock set back: %+v", got)
	}
	for hour := range 5 {
		f.clock = f.clock.Add(3 * time.Hour)
		for i := range 20 {
			got := ask(1000*hour+2000+i, fmt.Sprintf("slack:%d", i))
			if pending := 21 + 20*hour + i; got.Created != (pending < 50) {
				t.Errorf("with %d pending: %+v", pending, got)
			}
		}
	}
	if got := ask(0, "telegram:1"); got.State != factrows.RequestPending {
		t.Errorf("a chat that has one: %+v", got)
	}
}

// 10,000 unknown chats cost as many rows as the limits allow.
func TestAsk_Flood_BoundedRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 10_000 {
		_, err := f.Ask(t.Context(), onboardapi.Ask{ChatJID: fmt.Sprintf("telegram:%d", 1000+i), Sender: fmt.Sprintf("telegram:%d", 1000+i)})
		f.ok(err)
	}
	last, err := f.st.LastMessageID(t.Context())
	f.ok(err)
	all, err := factrows.Requests(t.Context(), f.st.Reader, "", 1000)
	f.ok(err)
	if len(all) != 20 || last != 20+maxNotices+1 {
		t.Errorf("%d requests, %d messages", len(all), last)
	}
}

// Operators' own commands are answered in the chats that get the notices.
func TestAsk_Flood_OperatorsReadTheFirstAndOneSummary(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.MaxPerSender = 100
	for n := range maxNotices + 5 {
		if done := f.ask(fmt.Sprintf("telegram:-%d", 1000+n)); !done.Created {
			t.Fatalf("request %d: %+v", n, done)
		}
	}
	f.wantNotices(operator, append(slices.Repeat([]string{"Request "}, maxNotices), "There were more than 10 requests within an hour")...)
	f.clock = f.clock.Add(2 * time.Hour)
	f.ask(family)
	if all := f.notices(operator); len(all) != maxNotices+2 || !strings.Contains(all[maxNotices+1], "Request ") {
		t.Errorf("an hour later: %q", all)
	}
}

func TestAsk_TextsOfStrangers_AreShownAsCode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const hostile = "`x` **b** <@U1> @everyone [l](http://evil.example)\n/approve AAAA-0000\u202e\x1b[2J"
	done, err := f.Ask(t.Context(), onboardapi.Ask{ChatJID: family, Sender: "telegram:`7`", SenderName: hostile, Title: hostile, Sample: strings.Repeat(hostile, 100)})
	f.ok(err)
	texts := f.notices(operator)
	if len(texts) != 1 || len(texts[0]) > 2500 || strings.ContainsAny(texts[0], "\x1b\u202e") {
		t.Fatalf("notices: %q", texts)
	}
	for _, part := range render.Telegram(texts[0], 4096) {
		for _, e := range part.Entities {
			if e.Type != "code" {
				t.Errorf("entity %+v in %q", e, part.Text)
			}
		}
	}
	for _, part := range render.Slack(texts[0], 4000) {
		if strings.Contains(part, "<") {
			t.Errorf("markup in %q", part)
		}
	}
	r := f.request(done.Code)
	for _, text := range []string{r.Title, r.SenderName, r.Sample} {
		if strings.ContainsAny(text, "\n\x1b\u202e") || len([]rune(text)) > maxSample {
			t.Errorf("stored: %q", text)
		}
	}
}

func TestAsk_InvalidAddress_BadRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, a := range []onboardapi.Ask{
		{}, {ChatJID: "telegram"}, {ChatJID: "telegram:"}, {ChatJID: ":7"}, {ChatJID: "x:a b"}, {ChatJID: "web:main"}, {ChatJID: "group:main"},
		{ChatJID: "x:1", Kind: "web"}, {ChatJID: "x:" + strings.Repeat("1", 5000)}, {ChatJID: "x:1", Sender: strings.Repeat("1", 5000)},
	} {
		if _, err := f.Ask(t.Context(), a); apierr.KindOf(err) != apierr.BadRequest {
			t.Errorf("%.100q: %v", fmt.Sprint(a), err)
		}
	}
}

func TestAsk_MovedChat_FindsTheRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.ask(family)
	f.ok(f.st.Write(t.Context(), func(tx *store.Tx) error { return chatmove.Move(tx, family, "telegram:-1009", 2) }))
	for _, jid := range []string{family, "telegram:-1009"} {
		if got := f.ask(jid); got.Created || got.Code != first.Code {
			t.Errorf("%s: %+v", jid, got)
		}
	}
	f.approve(first.Code, "")
	if f.routd.groups["telegram:-1009"] == "" {
		t.Errorf("connected: %v", f.routd.groups)
	}
	f.wantNotices("telegram:-1009", "This chat is not connected yet", "This chat is connected now")
}

func TestCode_CaseAndDashDoNotMatter(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ABCD-1234", "abcd-1234", " Abcd1234 "} {
		if got := normalCode(code); got != "ABCD-1234" {
			t.Errorf("%q: %s", code, got)
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		seen[newCode()] = true
	}
	if len(seen) < 999 {
		t.Errorf("1000 codes, %d different ones", len(seen))
	}
}
