package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a remote that is a list, and the platform to it. What is wrong with it has a name.
type memory struct {
	wrong string

	mu       sync.Mutex
	received []Received
	faults   map[string][]Fault // by chat
	busy     chan struct{}      // cap 1
}

const (
	longest = 500 // of a part, in bytes
	again   = "(again) "
)

func (w *memory) fail(chatJID string, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[chatJID] = append(w.faults[chatJID], f)
}

func (w *memory) list() []Received {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.received)
}

func (w *memory) Cut(m *msg.Message) (parts []adapter.Part, err error) {
	text := m.Content
	if w.wrong != "pings" {
		text = strings.NewReplacer("@", "@\u2060", "<!", "<\u2060!", "<#", "<\u2060#").Replace(text)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("there is nothing to say")
	}
	for len(text) > longest && w.wrong != "does not cut" {
		at := strings.LastIndexAny(text[:longest], " \n")
		if at <= 0 || w.wrong == "cuts through words" {
			at = longest
		}
		parts, text = append(parts, text[:at]), text[at:]
	}
	if w.wrong == "swallows the end" && len(parts) > 0 {
		return parts, nil
	}
	return append(parts, text), nil
}

func (w *memory) Send(ctx context.Context, m *msg.Message, part adapter.Part) (string, error) {
	if w.wrong == "sends one at a time" {
		w.busy <- struct{}{}
		defer func() { <-w.busy }()
	}
	r := Received{ChatJID: m.ChatJID, Thread: m.ThreadID, ReplyTo: m.ReplyToID, Text: part.(string)}
	switch w.wrong {
	case "knows no threads":
		r.Thread = ""
	case "knows no replies":
		r.ReplyTo = ""
	case "hangs on odd text":
		if strings.HasPrefix(r.Text, "```") {
			<-ctx.Done()
			return "", ctx.Err()
		}
	case "loses some":
		if strings.HasSuffix(r.Text, "7") {
			return "lost", nil
		}
	case "is late":
		if strings.HasSuffix(r.Text, "3") {
			go func() {
				<-time.After(time.Second)
				w.arrive(r)
			}()
			return "late", nil
		}
	}
	if err := w.injectedFault(ctx, r); err != nil {
		return "", err
	}
	return w.arrive(r), nil
}

// injectedFault returns the injected fault as the error of the platform.
func (w *memory) injectedFault(ctx context.Context, r Received) error {
	w.mu.Lock()
	queue := w.faults[r.ChatJID]
	if len(queue) == 0 {
		w.mu.Unlock()
		return nil
	}
	f := queue[0]
	w.faults[r.ChatJID] = queue[1:]
	w.mu.Unlock()
	if f.Arrived {
		w.arrive(r)
	}
	if f.Class == msg.Rate && (w.wrong == "waits by itself" || w.wrong == "sends one at a time") {
		select {
		case <-time.After(f.After):
		case <-ctx.Done():
		}
		return nil
	}
	if class, ok := map[string]map[msg.ErrorClass]msg.ErrorClass{
		"takes permanent for transient": {msg.Permanent: msg.Transient},
		"takes rate for transient":      {msg.Rate: msg.Transient},
		"takes transient for permanent": {msg.Transient: msg.Permanent},
		"takes ambiguous for transient": {msg.Ambiguous: msg.Transient},
		"takes ambiguous for permanent": {msg.Ambiguous: msg.Permanent},
	}[w.wrong][f.Class]; ok {
		f.Class = class
	}
	if w.wrong == "takes ambiguous for sent" && f.Class == msg.Ambiguous {
		return nil
	}
	if w.wrong == "repeats what is ambiguous" && f.Class == msg.Ambiguous {
		w.arrive(r)
	}
	return &adapter.Failure{Class: f.Class, After: f.After, Err: errors.New("as asked for")}
}

func (w *memory) arrive(r Received) (id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received = append(w.received, r)
	return fmt.Sprint(len(w.received))
}

// pen marks.
type pen struct{ *memory }

func (p pen) Mark(part adapter.Part) adapter.Part {
	if p.wrong == "marks nothing" {
		return part
	}
	return again + part.(string)
}

// glass finds.
type glass struct{ *memory }

func (g glass) Find(_ context.Context, m *msg.Message, part adapter.Part) (string, error) {
	for i, r := range g.list() {
		if r.ChatJID == m.ChatJID && r.Text == part && g.wrong != "finds nothing" {
			return fmt.Sprint(i + 1), nil
		}
	}
	if g.wrong == "finds anything" {
		return "1", nil
	}
	return "", nil
}

// platform has a power: to mark, to find, to repeat, or none.
func platform(power, wrong string) Platform {
	return Platform{
		Name: "irc", Chats: [2]string{"irc:one", "irc:two"}, Thread: "t", Replies: true,
		New: func(testing.TB, func() *store.Store) Remote {
			w := &memory{wrong: wrong, faults: map[string][]Fault{}, busy: make(chan struct{}, 1)}
			return Remote{
				Connect: func() adapter.Platform {
					switch power {
					case "mark":
						return pen{w}
					case "find":
						return glass{w}
					}
					return w
				},
				Received: w.list, Fail: w.fail,
			}
		},
		Options: func(o *adapter.Options) {
			o.Mark, o.Repeatable = power == "mark", power == "repeat"
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
	for _, power := range []string{"", "mark", "find", "repeat"} {
		for _, c := range cases() {
			t.Run(power+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { c.run(newFixture(t, platform(power, ""))) })
			})
		}
	}
}

func TestRun_MinimalPlatform_Passes(t *testing.T) {
	p := platform("", "")
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
