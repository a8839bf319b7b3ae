package onboarding

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"arizuko/onbod/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/chatmove"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/store"
)

// history is a property test's record of its requests.
type history struct {
	*fixture
	rt      *rapid.T
	prefix  string // of this run's rooms
	codes   []string
	decided map[string]factrows.Request // as first seen decided
	since   int64                       // the last message of earlier runs
	deleted int                         // approved by an operator and purged
}

// Whatever chats, operators, clocks and crashes do: a chat has one pending request, a request is decided
// once, and approved chats are connected and greeted once.
func TestOnboarding_RandomSteps_KeepInvariants(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.MaxPerSender, f.cfg.MaxPerHour, f.cfg.MaxPending = 1<<30, 1<<30, 1<<30
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		since, err := f.st.LastMessageID(t.Context())
		f.ok(err)
		h := &history{fixture: f, rt: rt, prefix: fmt.Sprintf("telegram:-%d00", run), decided: map[string]factrows.Request{}, since: since}
		rt.Repeat(map[string]func(*rapid.T){
			"": h.check, "ask": h.askOne, "approve": h.approveOne, "reject": h.rejectOne, "sweep": h.sweepAll, "wait": h.wait,
			"move": h.move, "rename": h.rename, "route": h.route, "routd": h.failRoutd, "crash": h.crash,
		})
		f.routd.unanswered, f.routd.lost, f.routd.refuse = false, false, nil
		h.sweepAll(rt)
		h.sweepAll(rt)
		h.check(rt)
		for _, code := range h.codes {
			if r := h.request(code); r.Noted() {
				rt.Fatalf("an approval is not finished: %+v", r)
			}
		}
		f.clock = f.clock.Add(f.cfg.TTL) // for the next run
		h.sweepAll(rt)
	})
}

func (h *history) chatOf(rt *rapid.T) string {
	return h.prefix + rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "chat")
}

func (h *history) codeOf(rt *rapid.T) string {
	if len(h.codes) == 0 {
		rt.Skip("no request yet")
	}
	return rapid.SampledFrom(h.codes).Draw(rt, "code")
}

// expected fails the test on an error that no operator would understand.
func expected(rt *rapid.T, err error) {
	if kind := apierr.KindOf(err); err != nil && kind != apierr.Conflict {
		rt.Fatal(err)
	}
}

func (h *history) askOne(rt *rapid.T) {
	jid := h.chatOf(rt)
	done, err := h.Ask(h.t.Context(), onboardapi.Ask{ChatJID: jid, Sender: ada, Title: "Family"})
	expected(rt, err)
	if done.Created {
		h.codes = append(h.codes, done.Code)
	}
}

func (h *history) approveOne(rt *rapid.T) {
	folder := rapid.SampledFrom([]string{"", "fam", "main"}).Draw(rt, "folder")
	_, err := h.Approve(h.t.Context(), Approval{Code: h.codeOf(rt), Folder: folder, By: operator})
	expected(rt, err)
}

func (h *history) rejectOne(rt *rapid.T) {
	_, err := h.Reject(h.t.Context(), Rejection{Code: h.codeOf(rt), By: operator})
	expected(rt, err)
}

func (h *history) sweepAll(rt *rapid.T) {
	_, err := h.sweep(h.t.Context())
	expected(rt, err)
}

func (h *history) wait(rt *rapid.T) {
	h.clock = h.clock.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 25 * time.Hour, 200 * time.Hour, -time.Hour}).Draw(rt, "wait"))
}

func (h *history) move(rt *rapid.T) {
	from, to := h.chatOf(rt), h.chatOf(rt)
	h.ok(h.st.Write(h.t.Context(), func(tx *store.Tx) error { return chatmove.Move(tx, from, to, h.now()) }))
	if folder, ok := h.routd.groups[from]; ok && from != to { // as routd's routes move
		if _, taken := h.routd.groups[to]; !taken {
			h.routd.groups[to] = folder
		}
		delete(h.routd.groups, from)
	}
}

func (h *history) rename(rt *rapid.T) {
	h.chat(h.chatOf(rt), msg.ChatGroup, rapid.SampledFrom([]string{"Family", "", "../x"}).Draw(rt, "title"))
}

func (h *history) route(rt *rapid.T) {
	jid := h.chatOf(rt)
	if _, connected := h.routd.groups[jid]; connected {
		delete(h.routd.groups, jid)
	} else {
		h.routd.groups[jid] = "main"
	}
}

func (h *history) failRoutd(rt *rapid.T) {
	h.routd.unanswered = rapid.Bool().Draw(rt, "unanswered")
	h.routd.lost = rapid.Bool().Draw(rt, "lost")
	h.routd.refuse = nil
	if rapid.Bool().Draw(rt, "down") {
		h.routd.refuse = apierr.New(apierr.Unavailable, "connection refused")
	}
}

// crash ends the process after a step of an approval, and starts another one.
func (h *history) crash(rt *rapid.T) {
	r := h.request(h.codeOf(rt))
	if r.State == factrows.RequestPending && !r.Noted() {
		h.ok(h.st.Write(h.t.Context(), func(tx *store.Tx) error { return rows.NoteApproval(tx, r.Code, "fam", operator) }))
		if _, connected := h.routd.groups[r.ChatJID]; !connected && rapid.Bool().Draw(rt, "connected") {
			h.routd.groups[r.ChatJID] = "fam"
		}
	}
	cfg := h.cfg
	h.restart(h.st, cfg.Groups)
	h.cfg.MaxPerSender, h.cfg.MaxPerHour, h.cfg.MaxPending = cfg.MaxPerSender, cfg.MaxPerHour, cfg.MaxPending
}

func (h *history) check(rt *rapid.T) {
	h.forgetDeleted(rt)
	pending := map[string]bool{}
	said := h.saidSince(rt)
	greetings := 0
	for _, code := range h.codes {
		r := h.request(code)
		if r.State == factrows.RequestPending {
			if pending[r.ChatJID] {
				rt.Fatalf("two pending requests of %s", r.ChatJID)
			}
			pending[r.ChatJID] = true
		} else {
			h.checkDecided(rt, r)
		}
		if r.State == factrows.RequestApproved && r.DecidedBy == operator {
			greetings++
		}
		for text, want := range map[string]bool{
			"Request " + code + " was sent": true, "Request " + code + " was rejected": r.State == factrows.RequestRejected,
			"Request " + code + " expired": r.State == factrows.RequestExpired && r.DecidedBy == factrows.DecidedByTime,
		} {
			if n := strings.Count(said, text); n > 1 || (n == 1) != want {
				rt.Fatalf("%q was said %d times about %+v", text, n, r)
			}
		}
	}
	if n := strings.Count(said, "connected now"); n != greetings+h.deleted {
		rt.Fatalf("%d greetings of %d approved requests", n, greetings+h.deleted)
	}
}

// forgetDeleted leaves out requests that were purged, which must have been decided.
func (h *history) forgetDeleted(rt *rapid.T) {
	h.codes = slices.DeleteFunc(h.codes, func(code string) bool {
		r, err := rows.Request(h.t.Context(), h.st.Reader, code)
		expected(rt, err)
		if r != nil {
			return false
		}
		before, known := h.decided[code]
		if !known {
			rt.Fatalf("request %s was deleted while it was pending", code)
		}
		if before.State == factrows.RequestApproved && before.DecidedBy == operator {
			h.deleted++
		}
		return true
	})
}

// checkDecided fails the test if a decided request has changed, except for its address and title.
func (h *history) checkDecided(rt *rapid.T, r *factrows.Request) {
	now := *r
	now.ChatJID, now.Title = "", ""
	if before, known := h.decided[r.Code]; known && before != now {
		rt.Fatalf("decided twice: %+v, then %+v", before, now)
	}
	h.decided[r.Code] = now
}

// saidSince are all notices of this run's chats.
func (h *history) saidSince(rt *rapid.T) string {
	last, err := h.st.LastMessageID(h.t.Context())
	expected(rt, err)
	var said strings.Builder
	for id := h.since + 1; id <= last; id++ {
		m, err := h.st.Message(h.t.Context(), id)
		if err != nil {
			rt.Fatal(err)
		}
		if m.ChatJID != operator {
			said.WriteString(m.Content + "\n")
		}
	}
	return said.String()
}
