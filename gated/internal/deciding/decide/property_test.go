package decide

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// texts are those of users, with some that the layers act on.
var texts = []string{"hi", "", "/ping", "/new", "/new go", "/stop", "/status", "/approve x", "@eng", "@eng go", "#fix", "#fix go", "#", "@", "@unknown go"}

func drawRow(t *rapid.T, id int64, at int64) Row {
	r := row(id, rapid.SampledFrom(texts).Draw(t, "text"))
	r.ReceivedAt = at
	r.Timestamp = at - rapid.SampledFrom([]int64{0, 0, 0, 2 * 86_400_000}).Draw(t, "age")
	r.Verb = rapid.SampledFrom([]string{msg.VerbMessage, msg.VerbMessage, msg.VerbMention, msg.VerbReaction, msg.VerbLeave}).Draw(t, "verb")
	r.IsBot = rapid.IntRange(0, 9).Draw(t, "bot") == 0
	r.GroupKey = rapid.SampledFrom([]string{"", "", "", "album"}).Draw(t, "key")
	r.PendingFiles = rapid.IntRange(0, 1).Draw(t, "files")
	switch rapid.IntRange(0, 9).Draw(t, "answer") {
	case 0:
		ignored(&r)
	case 1:
		observed(&r)
	case 2:
		r.Answer = routeapi.Answer{Action: routeapi.None, Reason: msg.ReasonNoRoute}
	case 3:
		r.Answer = routeapi.Answer{Error: "odd"}
	case 4:
		r.Answer = routeapi.Answer{Action: routeapi.Daemon, Target: "daemon:crm"}
	case 5:
		r.Known = false
	case 6:
		r.Answer.Engaged = true
	}
	drawMembers(t, &r)
	r.Answer.Impulse = impulse()
	r.Answer.Impulse.QuietMS = rapid.SampledFrom([]int64{0, 0, 3000}).Draw(t, "quiet")
	if command(&r); r.Command != nil {
		r.Group = r.Home
	}
	if rapid.IntRange(0, 19).Draw(t, "problem") == 0 {
		r.Break("panic: no")
	}
	return r
}

// drawMembers draws the rights of the row's sender.
func drawMembers(t *rapid.T, r *Row) {
	r.Sender = rapid.SampledFrom([]string{"telegram:7", "telegram:42"}).Draw(t, "sender")
	r.Operator = rapid.IntRange(0, 9).Draw(t, "operator") == 0
	members := rapid.Custom(func(t *rapid.T) *groupconfig.Members {
		if rapid.Bool().Draw(t, "open") {
			return nil
		}
		m := &groupconfig.Members{
			Rate: rapid.IntRange(0, 2).Draw(t, "rate"), OwnGroup: rapid.Bool().Draw(t, "reach"), NoPins: rapid.Bool().Draw(t, "pin"),
		}
		if rapid.Bool().Draw(t, "access") {
			m.Roles.Ask = closed.Roles.Ask
		}
		return m
	})
	r.Home, r.Group = members.Draw(t, "home"), members.Draw(t, "group")
	r.Quota = Quota{Left: rapid.IntRange(0, 3).Draw(t, "left"), Notified: rapid.Bool().Draw(t, "notified")}
	r.Foreign = rapid.Bool().Draw(t, "foreign")
}

// world is a chat whose rows are decided by steps, as the gateway drives them.
type world struct {
	t       *rapid.T
	rows    []Row // undecided
	stored  []Row // all
	state   State
	now     int64
	final   map[int64]int // how often each row was decided
	called  map[int64]bool
	answers bool // routd answers about every row

	request   Request
	parked    []Row
	connected bool // the chat has a group
}

// step reads a page of rows and checks the effects of a step.
func (w *world) step() {
	f := facts()
	f.Now, f.Request, f.Parked = w.now, w.request, len(w.parked)
	f.Request.Read = w.state.ReadsRequest || len(w.parked) > 0
	for _, r := range w.parked {
		f.Samples = append(f.Samples, w.answered(r))
	}
	page := rapid.IntRange(1, 6).Draw(w.t, "page")
	for i := range w.rows {
		r := w.rows[i]
		if r.ID <= w.state.Gate.ThroughID {
			continue
		}
		if f.More = len(f.Rows) == page; f.More {
			break
		}
		f.Last = r.ID
		if w.called[r.ID] {
			continue
		}
		r = w.answered(r)
		one := []Row{r}
		joinGroups(one, w.stored)
		r = one[0]
		r.Pin, r.Prefix = FindPin(&r, &f.Chat, registered), FindPrefix(&r, registered)
		f.Rows = append(f.Rows, r)
	}
	before := fmt.Sprintf("%+v", w.state)
	next, effects := Step(w.state, f)
	again, repeated := Step(w.state, f)
	if next != again || fmt.Sprintf("%+v", effects) != fmt.Sprintf("%+v", repeated) {
		w.t.Fatalf("two steps from %s differ: %+v %+v", before, next, again)
	}
	w.check(f, next, effects)
	w.checkMembers(f, effects)
	w.apply(effects)
	w.state = next
}

// answered is a row with the answer that routd has about it now.
func (w *world) answered(r Row) Row {
	r.Known = r.Known || w.answers
	if w.connected && r.Answer.Action == routeapi.None && r.Command == nil {
		r.Answer.Action, r.Answer.Folder, r.Answer.Home, r.Answer.Reason = routeapi.Trigger, "main", "main", msg.ReasonRoute
	}
	return r
}

// check: no row is taken twice, and each row left alone will be looked at again.
func (w *world) check(f *Facts, next State, effects []Effect) {
	said := rowsOf(effects)
	if len(slices.Compact(slices.Clone(said))) != len(said) {
		w.t.Fatalf("a row has two effects: %v", said)
	}
	waits := next.Again || next.Due > 0 || next.Awaits != 0
	for _, r := range f.Rows {
		if !slices.Contains(said, r.ID) && !next.Again {
			w.t.Fatalf("row %d has no effect, and the state is %+v", r.ID, next)
		}
	}
	for _, e := range effects {
		switch e.(type) {
		case Hold, Wait:
			if !waits {
				w.t.Fatalf("%+v, but nothing wakes the chat: %+v", e, next)
			}
		}
	}
}

// checkMembers: rows of senders who are not admitted change and start nothing, and no
// sender starts more turns than are left.
func (w *world) checkMembers(f *Facts, effects []Effect) {
	spent := map[string]int{}
	for _, e := range effects {
		switch e := e.(type) {
		case StoreTurn:
			counted := map[string]bool{}
			for _, entry := range e.Entries {
				r := rowOf(f, entry.Row)
				if !r.admitted(r.Group) {
					w.t.Fatalf("row %d of a sender who is not admitted is in a turn", r.ID)
				}
				if r.Counted() && !counted[r.Sender] {
					counted[r.Sender] = true
					if spent[r.Sender]++; spent[r.Sender] > 3 {
						w.t.Fatalf("%s starts %d turns", r.Sender, spent[r.Sender])
					}
				}
			}
		case Decide:
			if r := rowOf(f, e.Row); r != nil && e.Disposition == msg.Observed && r.Kind != KindChange && !r.admitted(r.Group) {
				w.t.Fatalf("row %d of a sender who is not admitted is observed", e.Row)
			}
		case PinTopic:
			w.mayPin(f, e.Row)
		case PinGroup:
			w.mayPin(f, e.Row)
		case ResetSession:
			if r := rowOf(f, e.Row); !r.admitted(r.Home) {
				w.t.Fatalf("row %d of a sender who is not admitted drops a session", e.Row)
			}
		}
	}
}

func (w *world) mayPin(f *Facts, row int64) {
	if r := rowOf(f, row); !r.admitted(r.Home) || r.Home != nil && r.Home.NoPins && !r.Operator {
		w.t.Fatalf("row %d pins the chat", row)
	}
}

func rowOf(f *Facts, id int64) *Row {
	for i := range f.Rows {
		if f.Rows[i].ID == id {
			return &f.Rows[i]
		}
	}
	return nil
}

func (w *world) apply(effects []Effect) {
	decide := func(id int64) {
		w.final[id]++
		w.rows = slices.DeleteFunc(w.rows, func(r Row) bool { return r.ID == id })
	}
	for _, e := range effects {
		switch e := e.(type) {
		case Decide:
			if e.Disposition == msg.Onboarding {
				w.park(e.Row)
			} else {
				decide(e.Row)
			}
		case TakeUpParked:
			w.rows = append(w.parked, w.rows...)
			slices.SortFunc(w.rows, func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
			w.parked = nil
		case DropParked:
			for _, r := range w.parked {
				decide(r.ID)
			}
			w.parked = nil
		case OpenRequest:
			if w.request.Call.State != CallNone || w.request.State == RequestPending {
				w.t.Fatalf("onbod is asked twice: %+v", w.request)
			}
			w.request.Call.State = CallOut
		case StoreTurn:
			for _, entry := range e.Entries {
				if entry.Derive.Source == "" {
					decide(entry.Row)
				}
			}
		case StopParked:
			for _, r := range w.parked {
				decide(r.ID)
			}
			w.parked = nil
		case StopChat:
			for _, r := range slices.Clone(w.rows) {
				if r.ID < e.Row && r.ThreadID == e.ThreadID && (e.Only == "" || r.Sender == e.Only) && !slices.Contains(e.Except, r.ID) && !w.called[r.ID] {
					decide(r.ID)
				}
			}
		case AskService:
			w.called[e.Row] = true
		}
	}
}

// park takes a row out of the undecided ones.
func (w *world) park(id int64) {
	i := slices.IndexFunc(w.rows, func(r Row) bool { return r.ID == id })
	w.parked = append(w.parked, w.rows[i])
	w.rows = slices.Delete(w.rows, i, i+1)
	if w.request.State != RequestPending || len(w.parked) > maxParked {
		w.t.Fatalf("row %d is parked, with %d others: %+v", id, len(w.parked), w.request)
	}
}

// answerRequest ends the call to onbod: the request waits for an operator.
func (w *world) answerRequest() {
	if w.request.Call.State == CallOut {
		w.request = Request{State: RequestPending, Code: "ABCD-1234"}
		w.state = State{ReadsRequest: true}
		w.settle()
	}
}

// endRequest has an operator decide the request.
func (w *world) endRequest() {
	w.request.State = rapid.SampledFrom([]RequestState{RequestApproved, RequestRejected, RequestExpired, ""}).Draw(w.t, "decision")
	w.request.Call.State = rapid.SampledFrom([]CallState{CallRejected, CallLimited, CallRefused}).Draw(w.t, "refusal")
	w.connected = w.request.State == RequestApproved
	w.state = State{}
	w.settle()
}

// settle makes steps until the state does not ask for another one at once.
func (w *world) settle() {
	for n := 0; ; n++ {
		if n > 200 {
			w.t.Fatalf("the steps do not end: %+v", w.state)
		}
		if w.step(); !w.state.Again {
			return
		}
	}
}

// TestStep_AnyRows: steps end, repeat themselves, and in the end each row has one
// disposition, or is with a service.
func TestStep_AnyRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, anyRows)
}

func anyRows(t *rapid.T) {
	w := &world{t: t, now: now, final: map[int64]int{}, called: map[int64]bool{}}
	total := rapid.IntRange(1, 15).Draw(t, "rows")
	for id := range int64(total) {
		r := drawRow(t, id+1, w.now)
		w.rows, w.stored = append(w.rows, r), append(w.stored, r)
		w.now += rapid.Int64Range(0, 2000).Draw(t, "pause")
		if rapid.Bool().Draw(t, "step") {
			w.settle()
		}
		if rapid.IntRange(0, 3).Draw(t, "onbod") == 0 {
			w.answerRequest()
		}
	}
	w.answers = true
	for range 4 { // no hold is longer, and a release may leave a group that is not complete
		w.now += maxHold + groupMaxHoldMS
		w.settle()
		w.answerRequest()
	}
	w.endRequest()
	for _, r := range append(w.rows, w.parked...) {
		if !w.called[r.ID] {
			t.Fatalf("row %d %q is left: %+v", r.ID, r.Content, w.state)
		}
	}
	for id, n := range w.final {
		if n != 1 {
			t.Fatalf("row %d was decided %d times", id, n)
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Add([]byte("rows"))
	f.Fuzz(rapid.MakeFuzz(anyRows))
}
