package adaptertest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/adapter"
	"arizuko/pkg/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// platform has a power: to mark, to find, to repeat, or none.
func platform(power, wrong string) Platform {
	return Platform{
		Floods: true, Closes: true, Deletes: true, Photos: true, GoneID: goneID, Writes: true,
		Outages: true, Lane: func(i int) string { return fmt.Sprint("irc:lane", i) },
		Name: "irc", Chats: [2]string{"irc:one", "irc:two"}, Thread: "t", Replies: true, Repeats: power == "repeat", Previews: power == "preview", Questions: power == "preview",
		New: func(t testing.TB, _ func() *store.Store) Remote {
			w := &memory{wrong: wrong, repeats: power == "repeat", faults: map[string]Fault{}, busy: make(chan struct{}, 1), over: make(chan struct{})}
			return Remote{
				Connect: func() adapter.Platform {
					switch power {
					case "mark":
						return pen{w}
					case "find":
						return glass{w}
					case "preview":
						return screen{w}
					}
					return w
				},
				Listen:       func() adapter.Listener { return w },
				FloodAccount: w.flood, Asked: w.askedFor, CloseThread: w.endThread, DeleteThread: w.endThread,
				RefusePhoto: w.refusePhoto, Data: t.TempDir(), Write: w.write,
				SetOutage: w.setOutage, Requests: w.requested, Received: w.list, Fail: w.fail,
				Shown: w.shown, FailEdit: w.failEdit, Delete: w.deleteShown, RefuseButtons: func() { w.bare = true },
			}
		},
		Options: func(o *adapter.Options) {
			if power == "mark" {
				o.Resend = adapter.ResendMarked
			}
			if wrong == "tells secrets" {
				o.Redact = nil
			}
		},
		TooLong: func(text string) bool { return len(text) > longest+len(again) },
		Marked:  func(text string) bool { return strings.HasPrefix(text, again) },
		Mentions: func(text string) bool {
			for _, call := range []string{"@everyone", "@here", "<!channel>", "<@", "<!here>", "<#"} {
				if strings.Contains(text, call) && !strings.Contains(text, "<@\u2060") {
					return true
				}
			}
			return false
		},
	}
}

func TestRun_CorrectPlatforms_Pass(t *testing.T) {
	for _, power := range []string{"", "mark", "find", "repeat", "preview"} {
		for _, c := range cases() {
			if c.applies != nil && !c.applies(platform(power, "")) {
				continue
			}
			t.Run(power+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { c.run(newFixture(t, platform(power, ""))) })
			})
		}
	}
}

// Ten thousand rows take seconds, so only one platform has as many.
func TestRun_TenThousandRowsWaiting_Pass(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	synctest.Test(t, func(t *testing.T) {
		p := platform("mark", "")
		p.Waiting = 10_000
		rowsWaiting(newFixture(t, p))
	})
}

func TestRun_MinimalPlatform_Passes(t *testing.T) {
	p := platform("", "")
	p.Outages, p.Lane = false, nil
	p.Floods, p.Closes, p.Deletes, p.Photos, p.GoneID = false, false, false, false, ""
	p.Thread, p.Replies, p.Mentions, p.TooLong, p.Marked, p.Options = "", false, nil, nil, nil, nil
	whole := p.New
	p.New = func(t testing.TB, st func() *store.Store) Remote {
		w := whole(t, st)
		w.Fail = nil
		return w
	}
	Run(t, p)
}

func TestRun_BrokenPlatforms_Fail(t *testing.T) {
	for _, tt := range []struct{ power, wrong, fails string }{
		{"", "loses some", "text in order"},
		{"", "is late", "text in order"},
		{"", "swallows the end", "long text"},
		{"", "cuts through words", "long text"},
		{"", "does not cut", "long text"},
		{"", "does not cut", "odd content"},
		{"", "sends one at a time", "two chats"},
		{"", "knows no replies", "reply"},
		{"", "knows no threads", "thread"},
		{"", "takes permanent for transient", "permanent failure"},
		{"", "takes rate for transient", "rate failure"},
		{"", "waits by itself", "rate failure"},
		{"", "takes transient for permanent", "transient failure"},
		{"", "takes ambiguous for transient", "ambiguous failure"},
		{"mark", "takes ambiguous for permanent", "ambiguous failure"},
		{"", "takes ambiguous for sent", "ambiguous failure"},
		{"", "repeats what is ambiguous", "ambiguous failure"},
		{"mark", "marks nothing", "crash before the record"},
		{"mark", "marks nothing", "ambiguous failure"},
		{"find", "finds nothing", "crash before the record"},
		{"find", "finds anything", "crash before the send"},
		{"", "loses some", "stop in the middle"},
		{"", "is late", "stop in the middle"},
		{"", "hangs on odd text", "odd content"},
		{"", "tells secrets", "secrets"},
		{"", "pings", "mentions"},
		{"", "takes an outage for permanent", "thirty minutes down"},
		{"mark", "takes an outage for ambiguous", "thirty minutes down"},
		{"mark", "takes an outage for ambiguous", "reset before the request"},
		{"mark", "takes an outage for ambiguous", "page instead of a rate limit"},
		{"", "takes an outage for transient", "cut before the answer"},
		{"mark", "takes an outage for permanent", "page instead of an answer"},
		{"mark", "takes an outage for permanent", "answer of another server"},
		{"mark", "takes an outage for ambiguous", "text instead of a refusal"},
		{"mark", "takes an outage for ambiguous", "text instead of a rate limit"},
		{"", "hurries through a ban", "page instead of a rate limit, without a time"},
		{"mark", "takes ambiguous for permanent", "minute of 502 for sends alone"},
		{"mark", "takes ambiguous for permanent", "sends alone unanswered"},
		{"mark", "takes an outage for permanent", "minute of 502"},
		{"mark", "takes an outage for permanent", "minute of 503"},
		{"mark", "takes an outage for permanent", "cut after the request"},
		{"mark", "takes an outage for permanent", "unanswered calls"},
		{"", "waits for the silent", "silent peer"},
		{"", "notices no outage", "silent peer"},
		{"", "retries a refused event for ever", "event refused by the database"},
		{"", "drops a refused event silently", "missed event refused by the database"},
		{"", "takes an outage for permanent", "restarts while down"},
		{"mark", "takes an outage for ambiguous", "restarts while down"},
		{"mark", "takes an outage for permanent", "restarts while calls are unanswered"},
		{"", "loses some", "rows waiting in an outage"},
		{"", "ignores the deadline", "sixteen hung sends"},
		{"", "takes the account's wait for a chat's", "flood wait of the account"},
		{"", "keeps to replies", "reply to what is gone"},
		{"", "replies to nothing", "reply to what is gone"},
		{"", "keeps to threads", "closed thread"},
		{"", "keeps to threads", "deleted thread"},
		{"", "leaves threads silently", "closed thread"},
		{"", "gives pictures up", "refused photo"},
		{"", "keeps a picture's text", "refused photo"},
		{"", "gives no reason", "refused photo"},
		{"", "loses pictures", "refused photo"},
		{"", "leaves pictures out silently", "refused photo"},
		{"preview", "keeps the button", "preview becomes the answer"},
		{"preview", "has no button", "preview becomes the answer"},
		{"preview", "makes a new message each time", "preview becomes the answer"},
		{"preview", "shows all of a text", "preview of a long text"},
		{"preview", "removes nothing", "preview without an answer"},
		{"preview", "brings deleted ones back", "preview that a user deletes"},
		{"preview", "forgets what it has shown", "preview over a restart"},
		{"preview", "forgets what it has shown", "preview answered while down"},
		{"preview", "keeps the buttons of a question", "question"},
		{"preview", "has no undo button", "undo button"},
		{"preview", "keeps the undo button", "undo button over a restart"},
		{"preview", "changes a text with its button", "undo button over a restart"},
		{"preview", "has undo buttons on all parts", "undo button of a long answer"},
		{"preview", "loses buttons silently", "question whose buttons are refused"},
		{"preview", "begins with the text", "crash before a preview is recorded"},
		{"preview", "takes a refused edit for made", "answer whose edit is refused"},
		{"preview", "removes nothing", "answer whose edit is refused"},
		{"preview", "takes a refused edit for made", "answer whose edit has to wait"},
		{"preview", "takes a refused edit for made", "answer whose edit may have arrived"},
		{"preview", "edits by another message", "answer whose edit has arrived"},
	} {
		t.Run(tt.power+" "+tt.wrong+"/"+tt.fails, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{TB: t}
				done := make(chan bool)
				go func() {
					defer close(done)
					all := cases()
					i := slices.IndexFunc(all, func(c testCase) bool { return c.name == tt.fails })
					all[i].run(newFixture(r, platform(tt.power, tt.wrong)))
				}()
				<-done
				<-time.After(time.Minute) // until all that is late is there
				if len(r.problems) == 0 {
					t.Error("the suite finds nothing wrong with it")
				}
			})
		})
	}
}

// recorder keeps what a case complains of.
type recorder struct {
	testing.TB
	problems []string
}

func (r *recorder) Helper() {}

func (r *recorder) Error(args ...any) { r.problems = append(r.problems, fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
