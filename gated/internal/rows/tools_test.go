package rows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func permission(set ...func(*rows.Question)) *rows.Question {
	q := &rows.Question{
		AskID: "perm", Question: "Run Bash?", Detail: "rm -r x", Options: []string{"Allow once", "Deny"}, PayloadHash: "h1",
		Who: msg.Who{Senders: []string{"telegram:1"}, Label: "operators"}, Name: "Eng", ExpiresAt: 600_000,
	}
	for _, f := range set {
		f(q)
	}
	return q
}

// asked asks a question of a turn.
func asked(t testing.TB, s *store.Store, turn *msg.Turn, q *rows.Question, now int64) *msg.Ask {
	t.Helper()
	var a *msg.Ask
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		a, err = rows.PutAsk(tx, turn, q, now)
		return err
	})
	return a
}

// showAsk settles an outbound row as sent.
func showAsk(t testing.TB, s *store.Store, id int64, platformID string) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(id, 1, 100); err != nil {
			return err
		}
		if err := tx.PutDelivery(store.Delivery{MessageID: id, State: msg.OutSent, PlatformID: platformID}, 100); err != nil {
			return err
		}
		return tx.SettleOutbound(id, msg.OutSent, platformID)
	})
}

// working is a run at work on a turn.
func working(t testing.TB, s *store.Store) (*msg.Run, *msg.Turn) {
	t.Helper()
	turn := gatedtest.Queued(t, s)
	return gatedtest.Begun(t, s, turn), turn
}

func answered(s *store.Store, t testing.TB, id int64, option int, now int64) error {
	return s.Write(t.Context(), func(tx *store.Tx) error { return rows.AnswerAsk(tx, id, option, "telegram:1", "Ann_", now, now) })
}

func TestAsk_Answered_OnceWithEditOfItsMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	run, turn := working(t, s)
	a := asked(t, s, turn, permission(), 1000)
	m := storetest.Must(s.Message(t.Context(), a.MessageID))(t)
	want := "**Eng asks for permission:** Run Bash?\n\n```\nrm -r x\n```\n\n1. Allow once\n2. Deny\n\n" +
		"_Only operators may answer this. Choose one, or reply with its number, within 9 minutes: no answer counts as no._"
	if m.Content != want || m.TurnID != turn.ID || m.ThreadID != turn.ThreadID || m.ReplyToID != turn.ReplyTo || m.OutState != msg.OutQueued {
		t.Errorf("row %+v", m)
	}
	if p := storetest.Must(s.Progress(t.Context(), turn.ID))(t); p == nil || p.State != agentproto.StatusRequiresAction {
		t.Errorf("progress %+v", p)
	}
	if waits := storetest.Must(rows.RunAsking(t.Context(), s.Reader, run.ID))(t); !cmp.Equal(waits, []int64{turn.ID}) {
		t.Errorf("the run waits for %v", waits)
	}
	showAsk(t, s, a.MessageID, "77")
	if found := storetest.Must(s.AskOfTarget(t.Context(), storetest.Chat, "77"))(t); found == nil || found.ID != a.ID {
		t.Errorf("message 77 shows %+v", found)
	}
	for _, option := range []int{0, 3} {
		if err := answered(s, t, a.ID, option, 2000); !errors.Is(err, store.ErrStale) {
			t.Errorf("option %d: %v", option, err)
		}
	}
	if err := answered(s, t, a.ID, 1, 2000); err != nil {
		t.Fatal(err)
	}
	if err := answered(s, t, a.ID, 2, 2001); !errors.Is(err, store.ErrStale) {
		t.Errorf("a second answer: %v", err)
	}
	got := storetest.Must(s.Ask(t.Context(), a.ID))(t)
	if got.State != msg.AskAnswered || got.Option != "Allow once" || got.AnsweredBy != "telegram:1" || got.EndedAt != 2000 {
		t.Errorf("stored %+v", got)
	}
	edits := storetest.Must(s.DerivedFrom(t.Context(), a.MessageID))(t)
	if len(edits) != 1 || edits[0].Kind != msg.KindEdit || edits[0].Content != "**Eng asks for permission:** Run Bash?\n\n```\nrm -r x\n```\n\n**Allow once** — answered by Ann\\_" {
		t.Fatalf("edits %+v", edits)
	}
	if p := storetest.Must(s.Progress(t.Context(), turn.ID))(t); p.State != agentproto.StatusRunning {
		t.Errorf("afterwards progress %+v", p)
	}
}

func TestAsk_AskedAgain_SameGetsStoredAnswerAnotherIsNew(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	first := asked(t, s, turn, permission(), 1000)
	showAsk(t, s, first.MessageID, "77")
	if err := answered(s, t, first.ID, 1, 2000); err != nil {
		t.Fatal(err)
	}
	if again := asked(t, s, turn, permission(), 3000); again.ID != first.ID || again.State != msg.AskAnswered || again.Option != "Allow once" {
		t.Errorf("the same question again: %+v", again)
	}
	var ids []int64
	for i, change := range []func(*rows.Question){
		func(q *rows.Question) { q.PayloadHash = "h2" },
		func(q *rows.Question) { q.Detail = "rm -r y" },
		func(q *rows.Question) { q.Options = []string{"Allow", "Deny"} },
	} {
		other := asked(t, s, turn, permission(change), 3000)
		if other.State != msg.AskOpen || other.AskID != fmt.Sprintf("perm~%d", i+2) {
			t.Errorf("another question: %+v", other)
		}
		if again := asked(t, s, turn, permission(change), 3001); again.ID != other.ID {
			t.Errorf("asked again it is %+v", again)
		}
		ids = append(ids, other.ID)
	}
	if len(ids) != 3 || ids[0] == ids[1] || ids[1] == ids[2] {
		t.Errorf("rows %v", ids)
	}
}

// A turn that is retried, and asks again, is seen to wait.
func TestAsk_AskedAgainAfterARetry_TurnIsSeenToWait(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	run, turn := working(t, s)
	first := asked(t, s, turn, permission(), 1000)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(rows.RequeueTurn(tx, turn.ID, rows.Requeue{}), rows.CloseRun(tx, run.ID, 1500))
	})
	if p := storetest.Must(s.Progress(t.Context(), turn.ID))(t); p != nil {
		t.Errorf("progress of the queued turn: %+v", p)
	}
	gatedtest.Begun(t, s, turn)
	if again := asked(t, s, turn, permission(), 2000); again.ID != first.ID {
		t.Errorf("asked again it is %+v", again)
	}
	if p := storetest.Must(s.Progress(t.Context(), turn.ID))(t); p == nil || p.State != agentproto.StatusRequiresAction {
		t.Errorf("progress %+v", p)
	}
}

func TestAsk_Limits_AreKept(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	ask := func(id string, set ...func(*rows.Question)) (a *msg.Ask, err error) {
		err = s.Write(t.Context(), func(tx *store.Tx) error {
			a, err = rows.PutAsk(tx, turn, permission(append(set, func(q *rows.Question) { q.AskID = id })...), 1000)
			return err
		})
		return a, err
	}
	if _, err := ask("x", func(q *rows.Question) { q.Who = msg.Who{Label: "operators"} }); !errors.Is(err, rows.ErrNoUser) {
		t.Errorf("no user may answer: %v", err)
	}
	for i := range agentproto.MaxAsks {
		a, err := ask(fmt.Sprint(i))
		if err != nil {
			t.Fatal(i, err)
		}
		if i >= agentproto.MaxOpenAsks-1 { // one is open less
			if _, err := ask("one more"); !errors.Is(err, rows.ErrTooManyAsks) {
				t.Fatalf("after %d: %v", i+1, err)
			}
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.ExpireAsk(tx, a.ID, 2000) })
		}
	}
	if _, err := ask("one more"); !errors.Is(err, rows.ErrTooManyAsks) {
		t.Errorf("one more than a turn may ask: %v", err)
	}
	if a, err := ask(msg.AskBudget); err != nil || a.State != msg.AskOpen {
		t.Errorf("gated's own question: %+v, %v", a, err)
	}
}

func TestAsk_Expiry_EndsItOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	a := asked(t, s, turn, permission(), 1000)
	showAsk(t, s, a.MessageID, "77")
	for now, due := range map[int64]int{1000: 0, 599_999: 0, 600_000: 1, 999: 0, -59_000: 0, -59_001: 1} { // at last the clock was set back
		if got := storetest.Must(rows.AsksDue(t.Context(), s.Reader, now))(t); len(got) != due {
			t.Errorf("at %d %d questions are due, want %d", now, len(got), due)
		}
	}
	if err := answered(s, t, a.ID, 1, 600_000); !errors.Is(err, store.ErrStale) {
		t.Errorf("a late answer: %v", err)
	}
	for range 2 {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.ExpireAsk(tx, a.ID, 600_000) })
	}
	edits := storetest.Must(s.DerivedFrom(t.Context(), a.MessageID))(t)
	if len(edits) != 1 || !strings.HasSuffix(edits[0].Content, "\n\nExpired: no answer within 9 minutes, which counts as no.") {
		t.Errorf("edits %+v", edits)
	}
}

func TestAsk_TurnEnds_ExpiresItsQuestionsButTheBudget(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	sent := asked(t, s, turn, permission(), 1000)
	showAsk(t, s, sent.MessageID, "77")
	unsent := asked(t, s, turn, permission(func(q *rows.Question) { q.AskID = "second" }), 1000)
	budget := asked(t, s, turn, permission(func(q *rows.Question) { q.AskID = msg.AskBudget }), 1000)
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.CancelTurn(tx, turn.ID, msg.ReasonCancelled, 2000) })
	for id, want := range map[int64]msg.AskState{sent.ID: msg.AskExpired, unsent.ID: msg.AskExpired, budget.ID: msg.AskOpen} {
		if a := storetest.Must(s.Ask(t.Context(), id))(t); a.State != want {
			t.Errorf("question %s is %s, want %s", a.AskID, a.State, want)
		}
	}
	if edits := storetest.Must(s.DerivedFrom(t.Context(), sent.MessageID))(t); len(edits) != 1 || !strings.HasSuffix(edits[0].Content, "No answer is needed any more.") {
		t.Errorf("edits of the shown question: %+v", edits)
	}
	if edits := storetest.Must(s.DerivedFrom(t.Context(), unsent.MessageID))(t); len(edits) != 0 {
		t.Errorf("edits of the one that was not sent: %+v", edits)
	}
	if m := storetest.Must(s.Message(t.Context(), unsent.MessageID))(t); m.OutState != msg.OutCancelled {
		t.Errorf("the one that was not sent is %s", m.OutState)
	}
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		_, err := rows.PutAsk(tx, turn, permission(func(q *rows.Question) { q.AskID = "third" }), 3000)
		return err
	})
	if !errors.Is(err, store.ErrStale) {
		t.Errorf("a question of the ended turn: %v", err)
	}
}

func TestFreeSlot_RunThatWaitsForAnAnswer_UsesNone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	_, turn := working(t, s)
	free := func() (ok bool) {
		storetest.Write(t, s, func(tx *store.Tx) (err error) { ok, err = rows.FreeSlot(tx, 1); return err })
		return ok
	}
	if free() {
		t.Error("the busy run uses no slot")
	}
	a := asked(t, s, turn, permission(), 1000)
	if !free() {
		t.Error("the run that waits for an answer uses a slot")
	}
	showAsk(t, s, a.MessageID, "77")
	if err := answered(s, t, a.ID, 2, 2000); err != nil {
		t.Fatal(err)
	}
	if free() {
		t.Error("the run that has its answer uses no slot")
	}
}

// inFork stores an answer in a chat's place whose turn runs in a topic, and returns its platform id.
func inFork(t *testing.T, s *store.Store, chat, thread, turnTopic, rowTopic, id string) string {
	t.Helper()
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		in := &msg.Message{ChatJID: chat, Direction: msg.In, ThreadID: thread, Topic: thread, ReceivedAt: 1}
		if _, _, err := tx.PutMessage(in); err != nil {
			return err
		}
		turn := &msg.Turn{Kind: msg.Conversation, Folder: "f", ChatJID: chat, Topic: turnTopic, ThreadID: thread, Place: thread, TriggerMessageID: in.ID}
		if _, err := rows.PutTurn(tx, turn, 0); err != nil {
			return err
		}
		out := &msg.Message{ChatJID: chat, Direction: msg.Out, ThreadID: thread, Topic: rowTopic, TurnID: turn.ID, PlatformID: id, OutState: msg.OutSent, ReceivedAt: 1}
		_, _, err := tx.PutMessage(out)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// putFork stores a fork of a group.
func putFork(t *testing.T, s *store.Store, f msg.Fork) {
	t.Helper()
	f.MessageID = 1
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return rows.PutFork(tx, &f) }); err != nil {
		t.Fatal(err)
	}
}

func endFork(t *testing.T, s *store.Store, chat, topic string, now int64) {
	t.Helper()
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.EndFork(chat, topic, now) }); err != nil {
		t.Fatal(err)
	}
}

// wantForks fails the test unless a message runs in those forks; "/" marks one that has ended.
func wantForks(t *testing.T, s *store.Store, m msg.Message, want ...string) {
	t.Helper()
	forks, err := rows.ForksOfRow(t.Context(), s.Reader, &m)
	var got []string
	for _, f := range forks {
		got = append(got, f.Folder+" "+f.Topic+map[bool]string{true: "/"}[f.EndedAt != 0])
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s %q, reply to %q: %q %v, want %q", m.ChatJID, m.ThreadID, m.ReplyToID, got, err, want)
	}
}

func TestForksOfRow_RepliesToItsMessages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	chat := "telegram:-1"
	parent := inFork(t, s, chat, "", "", "", "1")
	answer := inFork(t, s, chat, "", "#fix", "", "2")
	question := inFork(t, s, chat, "", "", "#fix", "3")
	elsewhere := inFork(t, s, chat, "9", "9#fix", "9", "4")
	putFork(t, s, msg.Fork{ChatJID: chat, Topic: "#fix", Folder: "f", CreatedAt: 1})
	check := func(thread, replyTo string, want ...string) {
		t.Helper()
		wantForks(t, s, msg.Message{ChatJID: chat, ThreadID: thread, ReplyToID: replyTo}, want...)
	}
	check("", "")
	check("", "unknown")
	check("", parent)
	check("", answer, "f #fix")
	check("", question, "f #fix")
	check("9", elsewhere) // there is no such fork
	inside := storetest.Must(s.MessageByPlatformID(t.Context(), chat, answer))(t)
	kid := gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.Kind, turn.ChatJID, turn.Folder, turn.Topic, turn.RootTurnID = msg.Delegated, chat, "f/kid", "#d9", inside.TurnID
	})
	storetest.Stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, TurnID: kid.ID, PlatformID: "7", OutState: msg.OutSent})
	check("", "7", "f #fix")
	endFork(t, s, chat, "#fix", 5)
	check("", answer)
	check("", question)
}

// In a thread on Slack, what a message replies to is not known.
func TestForksOfRow_UnlinkedThread_AllOpenForks(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	slack := "slack:C1"
	off := inFork(t, s, slack, "1.2", "1.2", "1.2", "1.3")
	for at, f := range []msg.Fork{{Topic: "1.2#fix", Folder: "f"}, {Topic: "1.2#fix2", Folder: "f"}, {Topic: "1.2#other", Folder: "g"}} {
		f.ChatJID, f.ThreadID, f.CreatedAt = slack, "1.2", int64(at)+1
		putFork(t, s, f)
	}
	wantForks(t, s, msg.Message{ChatJID: slack, ThreadID: "1.2", ReplyToID: "1.2"}, "g 1.2#other", "f 1.2#fix2", "f 1.2#fix")
	endFork(t, s, slack, "1.2#fix2", 5)
	wantForks(t, s, msg.Message{ChatJID: slack, ThreadID: "1.2", ReplyToID: "1.2"}, "g 1.2#other", "f 1.2#fix")
	wantForks(t, s, msg.Message{ChatJID: slack, ThreadID: "8.8", ReplyToID: "8.8"})
	wantForks(t, s, msg.Message{ChatJID: slack, ReplyToID: off})
}

func TestForksOfRow_OwnThread_AfterItsEndToo(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "slack:C1", "", "", "", "2.2")
	own := msg.Fork{ChatJID: "slack:C1", Topic: "#fix", Folder: "f", ThreadID: "2.2", OwnThread: true, CreatedAt: 7}
	putFork(t, s, own)
	inside := msg.Message{ChatJID: "slack:C1", ThreadID: "2.2", ReplyToID: "2.2"}
	wantForks(t, s, inside, "f #fix")
	putFork(t, s, msg.Fork{ChatJID: "slack:C1", Topic: "#fix#fix", Folder: "f", ThreadID: "2.2", CreatedAt: 8})
	wantForks(t, s, inside, "f #fix#fix", "f #fix")
	endFork(t, s, "slack:C1", "#fix#fix", 9)
	endFork(t, s, "slack:C1", "#fix", 10)
	endFork(t, s, "slack:C1", "#fix", 11) // again
	wantForks(t, s, inside, "f #fix/")
	own.MessageID, own.EndedAt = 1, 10
	got, err := s.ForkOfThread(t.Context(), "slack:C1", "2.2")
	if diff := cmp.Diff(&own, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	again := own
	again.Topic, again.CreatedAt, again.EndedAt = "#fix2", 6, 0 // the clock was set back
	putFork(t, s, again)
	wantForks(t, s, inside, "f #fix2")
}

func TestForkTaken_OncePerChat_AndWhileOpenPerGroup(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "telegram:-1", "", "", "", "1")
	for _, f := range []msg.Fork{
		{ChatJID: "telegram:-1", Topic: "#fix"}, {ChatJID: "telegram:-1", Topic: "#fix10"}, {ChatJID: "telegram:-1", Topic: "#fix#fix"},
		{ChatJID: "telegram:-1", Topic: "#fix-99"}, {ChatJID: "telegram:-1", Topic: "#fixed"}, {ChatJID: "web:f", Topic: "#tab"},
	} {
		f.Folder, f.CreatedAt = "f", 1
		putFork(t, s, f)
	}
	check := func(folder, chat, topic string, want bool) {
		t.Helper()
		if taken, err := rows.ForkTaken(t.Context(), s.Reader, folder, chat, topic); taken != want || err != nil {
			t.Errorf("%s %s %s: %v %v, want %v", folder, chat, topic, taken, err, want)
		}
	}
	for _, ended := range []bool{false, true} {
		check("f", "telegram:-1", "#fix", true)
		check("g", "telegram:-1", "#fix", true)
		check("f", "telegram:-2", "#fix", !ended)
		check("g", "telegram:-2", "#fix", false)
		check("f", "telegram:-2", "#tab", true) // a tab stays
		endFork(t, s, "telegram:-1", "#fix", 5)
		endFork(t, s, "web:f", "#tab", 5)
	}
	for chat, want := range map[string]int{"telegram:-1": 10, "telegram:-2": 0} {
		if n, err := rows.LastFork(t.Context(), s.Reader, chat, "#fix"); n != want || err != nil {
			t.Errorf("the last fork of %s is %d, %v, want %d", chat, n, err, want)
		}
	}
	open, err := rows.OpenForks(t.Context(), s.Reader, "f", "telegram:-1", 3)
	if want := []string{"#fix#fix", "#fix-99", "#fix10"}; !slices.Equal(open, want) || err != nil {
		t.Errorf("open: %q %v, want %q", open, err, want)
	}
}

func TestForkTaken_TopicOfUsers(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "telegram:-1", "", "", "", "1")
	run := msg.Run{Folder: "f", Topic: "#fix", ChatJID: "telegram:-1", Runtime: "process", StartedAt: 1}
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if err := rows.BindThread(tx, "telegram:-1", "33", "#bound"); err != nil {
			return err
		}
		if err := rows.StartRun(tx, &run, 1); err != nil {
			return err
		}
		return rows.StoreSession(tx, &msg.Run{ID: run.ID, Folder: "f", Topic: "#fix"}, "session", 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		folder, chat, topic string
		want                bool
	}{
		{"f", "telegram:-2", "#fix", true}, {"g", "telegram:-2", "#fix", false}, {"g", "telegram:-1", "#bound", true}, {"g", "telegram:-2", "#bound", false},
	} {
		if taken, err := rows.ForkTaken(t.Context(), s.Reader, tt.folder, tt.chat, tt.topic); taken != tt.want || err != nil {
			t.Errorf("%+v: %v %v", tt, taken, err)
		}
	}
}

func TestPutFork_NameOfAnEndedFork_Refused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "telegram:-1", "", "", "", "1")
	f := msg.Fork{ChatJID: "telegram:-1", Topic: "#fix", Folder: "f", CreatedAt: 1, MessageID: 1}
	putFork(t, s, f)
	endFork(t, s, "telegram:-1", "#fix", 2)
	f.Folder = "g"
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return rows.PutFork(tx, &f) }); !errors.Is(err, store.ErrRefused) {
		t.Errorf("the same name again: %v", err)
	}
}

// A question to a fork's own thread, sent by a turn in the parent, calls the group there.
func TestDeliveryChanges_MessageToForksThread_CountsThere(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	parent := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.Place, turn.Folder, turn.Topic = "discord:5", "", "f", "" })
	inside := gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.ChatJID, turn.ThreadID, turn.Place, turn.Folder, turn.Topic = "discord:5", "77", "77", "f", "#fix"
	})
	other := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.Place, turn.Folder, turn.Topic = "discord:5", "", "g", "" })
	putFork(t, s, msg.Fork{ChatJID: "discord:5", Topic: "#fix", Folder: "f", ThreadID: "77", OwnThread: true, CreatedAt: 900})
	sent := func(turn *msg.Turn, thread string) {
		t.Helper()
		m := storetest.Stored(t, s, &msg.Message{ChatJID: "discord:5", Direction: msg.Out, Source: msg.SourceTool, TurnID: turn.ID, ThreadID: thread, OutState: msg.OutQueued})
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(m.ID, 1, 950) })
		storetest.Deliver(t, s, store.Delivery{MessageID: m.ID, State: msg.OutSent}, 960)
	}
	sent(parent, "77") // the question
	sent(inside, "77")
	sent(inside, "") // the corrected answer
	sent(other, "77")
	sent(parent, "88") // a thread of no fork
	type change struct {
		Folder, Place string
		Claims        bool
		ClaimedAt     int64
	}
	at := func(turn *msg.Turn) int64 {
		return storetest.Must(s.Message(t.Context(), turn.TriggerMessageID))(t).ReceivedAt
	}
	want := []change{
		{"f", "77", true, 900}, {"f", "77", false, at(inside)}, {"f", "77", false, at(inside)}, {"g", "", false, at(other)}, {"f", "", false, at(parent)},
	}
	check := func(want []change) {
		t.Helper()
		var got []change
		for _, d := range storetest.Must(s.DeliveryChanges(t.Context(), 0, 100))(t) {
			if d.State == msg.OutSent {
				got = append(got, change{d.Folder, d.Place, d.Claims, d.ClaimedAt})
			}
		}
		differ(t, "got", got, want)
	}
	check(want)
	endFork(t, s, "discord:5", "#fix", 970)
	want[0].Claims = false
	check(want)
}

func TestMoveChat_ForksMove(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "telegram:-1", "", "", "", "1")
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if err := rows.PutFork(tx, &msg.Fork{ChatJID: "telegram:-1", Topic: "#fix", Folder: "f", MessageID: 1, CreatedAt: 1}); err != nil {
			return err
		}
		return tx.MoveChat("telegram:-1", "telegram:-100", 5)
	})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := s.Fork(t.Context(), "telegram:-100", "#fix"); f == nil || err != nil {
		t.Errorf("the fork has not moved: %v", err)
	}
}

// poll stores an open poll of a chat with the options a, b and c. Its message is delivered unless the
// platform id is "".
func poll(t testing.TB, s *store.Store, chatJID, platformID string, set ...func(*msg.StoredPoll)) *msg.StoredPoll {
	t.Helper()
	p := &msg.StoredPoll{
		Folder: storetest.Folder, ChatJID: chatJID, Topic: "#lunch", CreatedAt: 100,
		Poll: msg.Poll{Question: "Lunch?", Options: []string{"a", "b", "c"}},
	}
	for _, f := range set {
		f(p)
	}
	m := &msg.Message{ChatJID: chatJID, Direction: msg.Out, Kind: msg.KindPoll, Content: p.Poll.JSON(), OutState: msg.OutQueued, ReceivedAt: 100}
	storetest.Write(t, s, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		p.MessageID = m.ID
		if err := rows.PutPoll(tx, p); err != nil || platformID == "" {
			return err
		}
		if err := tx.ClaimOutbound(m.ID, 1, 100); err != nil {
			return err
		}
		return tx.SettleOutbound(m.ID, msg.OutSent, platformID)
	})
	return p
}

func vote(t testing.TB, s *store.Store, id int64, voter string, v msg.Vote, at int64) error {
	t.Helper()
	return s.Write(t.Context(), func(tx *store.Tx) error { return tx.Vote(id, voter, "Name of "+voter, &v, at) })
}

func multiple(p *msg.StoredPoll) { p.Poll.Multiple = true }

func TestVote_LaterOne_Replaces(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, storetest.Chat, "9", multiple)
	for i, v := range []msg.Vote{
		{Options: []int{1, 2}}, {Options: []int{3}}, {Options: []int{1}, Change: msg.VoteAdds}, {Options: []int{1}, Change: msg.VoteAdds},
		{Options: []int{3}, Change: msg.VoteRemoves},
	} {
		if err := vote(t, s, p.ID, "telegram:7", v, int64(200+i)); err != nil {
			t.Fatal(err)
		}
	}
	want := []msg.PollVote{{Voter: "telegram:7", Name: "Name of telegram:7", Options: []int{1}, At: 204}}
	differ(t, "got", storetest.Must(s.PollVotes(t.Context(), p.ID))(t), want)
	if err := vote(t, s, p.ID, "telegram:7", msg.Vote{}, 300); err != nil {
		t.Fatal(err)
	}
	if votes := storetest.Must(s.PollVotes(t.Context(), p.ID))(t); len(votes) != 0 {
		t.Errorf("after the withdrawal: %+v", votes)
	}
}

func TestVote_ThatDoesNotCount_IsStale(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, storetest.Chat, "9")
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, 500) })
	if err := vote(t, s, p.ID, "a", msg.Vote{Options: []int{1}}, 500); err != nil {
		t.Errorf("a vote that arrived before the end: %v", err)
	}
	tests := map[string]error{
		"after the end":   vote(t, s, p.ID, "b", msg.Vote{Options: []int{1}}, 501),
		"unknown option":  vote(t, s, p.ID, "b", msg.Vote{Options: []int{4}}, 400),
		"option below 1":  vote(t, s, p.ID, "b", msg.Vote{Options: []int{0}}, 400),
		"of no poll":      vote(t, s, p.ID+1, "b", msg.Vote{Options: []int{1}}, 400),
		"a second end":    s.Write(t.Context(), func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, 600) }),
		"many of them":    vote(t, s, p.ID, "b", msg.Vote{Options: []int{1, 1, 1, 1}}, 400),
		"result is known": nil,
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return rows.EndPoll(tx, p.ID, &msg.PollResult{Counts: []int{1, 0, 0}, Voters: 1}, 510)
	})
	tests["result is known"] = vote(t, s, p.ID, "b", msg.Vote{Options: []int{1}}, 400)
	for name, err := range tests {
		if !errors.Is(err, store.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := storetest.Must(s.Poll(t.Context(), p.ID))(t); got.ClosedAt != 500 || got.EndPending || got.Poll.Result.Voters != 1 {
		t.Errorf("the poll: %+v", got)
	}
}

// end calls QueuePollEnd and returns the outbound rows after the poll's.
func end(t testing.TB, s *store.Store, p *msg.StoredPoll) (ended bool, list []*msg.Message) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) (err error) { ended, err = rows.QueuePollEnd(tx, p.ID, 700); return err })
	for id := p.MessageID + 1; ; id++ {
		m := storetest.Must(s.Message(t.Context(), id))(t)
		if m == nil {
			return ended, list
		}
		list = append(list, m)
	}
}

func TestQueuePollEnd_ClosesTheMessageOnce(t *testing.T) {
	t.Parallel()
	for jid, native := range map[string]bool{"telegram:-1": true, "slack:C1": false} {
		s := storetest.Open(t)
		p := poll(t, s, jid, "9")
		if err := vote(t, s, p.ID, "a", msg.Vote{Options: []int{2}}, 300); err != nil {
			t.Fatal(err)
		}
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, 500) })
		for range 2 {
			ended, rows := end(t, s, p)
			if !ended || len(rows) != 1 || rows[0].Kind != msg.KindPoll || rows[0].TargetID != "9" || rows[0].OutState != msg.OutQueued {
				t.Fatalf("%s: ended %v with %+v", jid, ended, rows)
			}
			closing := storetest.Must(msg.ParsePoll(rows[0].Content))(t)
			differ(t, fmt.Sprintf("%s:", jid), closing.Result, &msg.PollResult{Counts: []int{0, 1, 0}, Voters: 1})
		}
		if got := storetest.Must(s.Poll(t.Context(), p.ID))(t); got.EndPending || (got.Poll.Result == nil) != native {
			t.Errorf("%s: %+v", jid, got)
		}
	}
}

func TestQueuePollEnd_MessageThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, storetest.Chat, "")
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, p.ID, 500) })
	if ended, rows := end(t, s, p); ended || len(rows) != 0 {
		t.Errorf("before the delivery: %v, %+v", ended, rows)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(p.MessageID, 1, 100) })
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.SettleOutbound(p.MessageID, msg.OutFailed, "") })
	if ended, rows := end(t, s, p); !ended || len(rows) != 0 {
		t.Errorf("never delivered: %v, %+v", ended, rows)
	}

	for what, forget := range map[string]func(*store.Tx) error{
		"after the move":  func(tx *store.Tx) error { return tx.MoveChat("telegram:-5", "telegram:-1005", 600) },
		"of a former bot": func(tx *store.Tx) error { return errors.Join(tx.PutBot("teled", "1", 1), tx.PutBot("teled", "2", 2)) },
	} {
		s := storetest.Open(t)
		lost := poll(t, s, "telegram:-5", "9")
		if err := vote(t, s, lost.ID, "a", msg.Vote{Options: []int{2}}, 300); err != nil {
			t.Fatal(err)
		}
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, lost.ID, 500) })
		storetest.Write(t, s, forget)
		if ended, rows := end(t, s, lost); !ended || len(rows) != 0 {
			t.Errorf("%s: %v, %+v", what, ended, rows)
		}
		if got := storetest.Must(s.Poll(t.Context(), lost.ID))(t).Poll.Result; !cmp.Equal(got, &msg.PollResult{Counts: []int{0, 1, 0}, Voters: 1}) {
			t.Errorf("%s: the result is %+v", what, got)
		}
	}
}

func TestPolls_Lists(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ids := func(all []*msg.StoredPoll, err error) string {
		t.Helper()
		var list []int64
		for _, p := range storetest.Must(all, err)(t) {
			list = append(list, p.ID)
		}
		return fmt.Sprint(list)
	}
	closesAt := func(at int64) func(*msg.StoredPoll) { return func(p *msg.StoredPoll) { p.Poll.ClosesAt = at } }
	late, soon, never := poll(t, s, storetest.Chat, "1", closesAt(900)), poll(t, s, storetest.Chat, "2", closesAt(400)), poll(t, s, storetest.Chat, "3")
	lost := poll(t, s, storetest.Chat, "")
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(lost.MessageID, 1, 100) })
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.SettleOutbound(lost.MessageID, msg.OutFailed, "") })
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClosePoll(tx, never.ID, 500) })

	if got, want := ids(rows.PollsDue(t.Context(), s.Reader, 900, 10)), fmt.Sprint([]int64{soon.ID, late.ID}); got != want {
		t.Errorf("due: %s, not %s", got, want)
	}
	if got, want := ids(rows.PollsDue(t.Context(), s.Reader, 899, 10)), fmt.Sprint([]int64{soon.ID}); got != want {
		t.Errorf("due earlier: %s, not %s", got, want)
	}
	if got, want := ids(rows.PollsEnding(t.Context(), s.Reader, 0, 10)), fmt.Sprint([]int64{never.ID}); got != want {
		t.Errorf("ending: %s, not %s", got, want)
	}
	if got, want := ids(rows.PollsUndelivered(t.Context(), s.Reader, 0, 10)), fmt.Sprint([]int64{lost.ID}); got != want {
		t.Errorf("undelivered: %s, not %s", got, want)
	}
	if got, want := ids(rows.PollsOf(t.Context(), s.Reader, storetest.Chat, storetest.Folder, msg.PollOpen, 1<<62, 2)), fmt.Sprint([]int64{lost.ID, soon.ID}); got != want {
		t.Errorf("open: %s, not %s", got, want)
	}
	if got := ids(rows.PollsOf(t.Context(), s.Reader, storetest.Chat, "other", msg.PollOpen, 1<<62, 2)); got != "[]" {
		t.Errorf("of another group: %s", got)
	}
	if p := storetest.Must(s.PollOfMessage(t.Context(), soon.MessageID))(t); p == nil || p.ID != soon.ID || p.Topic != "#lunch" {
		t.Errorf("by message: %+v", p)
	}
}

func TestPollRef_NamesTheMessage(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	p := poll(t, s, storetest.Chat, "")
	sends := func() bool {
		of := storetest.Must(adapterrows.PollsSending(t.Context(), s.Reader, "telegram", storetest.Chat))(t)
		if all := storetest.Must(adapterrows.PollsSending(t.Context(), s.Reader, "telegram", ""))(t); !slices.Equal(of, all) || len(storetest.Must(adapterrows.PollsSending(t.Context(), s.Reader, "telegram", "telegram:-9"))(t)) > 0 {
			t.Errorf("of its chat %v, of all %v", of, all)
		}
		return slices.Equal(of, []int64{p.MessageID})
	}
	if sends() {
		t.Error("a queued poll is being sent")
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(p.MessageID, 1, 100) })
	if !sends() {
		t.Error("a claimed poll is not being sent")
	}
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.PutDelivery(store.Delivery{MessageID: p.MessageID, State: msg.OutQueued, Attempts: 1, NotBefore: 1 << 50, ErrorClass: msg.Transient}, 1)
	})
	if sends() {
		t.Error("a poll that waits for its next attempt is being sent")
	}
	for _, ref := range []string{"61", "61", "62"} { // a second copy has another id
		storetest.Write(t, s, func(tx *store.Tx) error { return adapterrows.PutPollRef(tx, "teled", ref, p.MessageID) })
	}
	for ref, want := range map[string]bool{"61": true, "62": true, "63": false} {
		if m := storetest.Must(adapterrows.MessageByPollRef(t.Context(), s.Reader, "teled", ref))(t); (m != nil && m.ID == p.MessageID) != want {
			t.Errorf("%s: %+v", ref, m)
		}
	}
	if storetest.Must(rows.VotesWaiting(t.Context(), s.Reader, storetest.Chat, 5))(t) {
		t.Error("votes wait in an empty chat")
	}
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: msg.VerbVote, Content: "{}", Timestamp: 5, ReceivedAt: 9})
	if !storetest.Must(rows.VotesWaiting(t.Context(), s.Reader, storetest.Chat, 5))(t) || storetest.Must(rows.VotesWaiting(t.Context(), s.Reader, storetest.Chat, 4))(t) {
		t.Error("votes wait up to their time")
	}
}

// The counts in SQL are those of msg.Poll.Tally, also of votes that programs of others wrote.
func TestPollResult_IsTheTally(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	for _, multiple := range []bool{false, true} {
		p := poll(t, s, storetest.Chat, "")
		storetest.Exec(t, path, `UPDATE polls SET multiple = ? WHERE id = ?`, map[bool]int{true: 1}[multiple], p.ID)
		for i, options := range []string{"[1]", "[2,1]", "[1,2]", "[]", "[9]", "[0,-1]", `{"0":1}`, `"x"`, "7", "null", "[2]"} {
			storetest.Exec(t, path, `INSERT INTO poll_votes (poll_id, voter, name, options, at) VALUES (?, ?, ?, ?, ?)`,
				p.ID, fmt.Sprintf("telegram:%d", i), []string{"", "Ann"}[i%2], options, 100-i)
		}
		p = storetest.Must(s.Poll(t.Context(), p.ID))(t)
		differ(t, fmt.Sprintf("multiple %t", multiple), storetest.Must(s.PollResult(t.Context(), p))(t), p.Poll.Tally(storetest.Must(s.PollVotes(t.Context(), p.ID))(t)))
		first := storetest.Must(rows.PollVoters(t.Context(), s.Reader, p, 2))(t)
		want := []string{"Ann", "telegram:0"} // of [2,1] and [1]
		if multiple {
			want = []string{"telegram:2", "Ann"} // of [1,2] and [2,1]
		}
		if !slices.Equal(first[0], want) {
			t.Errorf("multiple %t: voters %q, want %q", multiple, first, want)
		}
	}
}
