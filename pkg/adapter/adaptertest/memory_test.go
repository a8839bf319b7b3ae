package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// memory is a remote that is a list, and the platform to it. What is wrong with it has a name.
type memory struct {
	wrong   string
	repeats bool // its parts are Repeatable

	mu       sync.Mutex
	received []Received
	faults   map[string]Fault // by chat
	busy     chan struct{}    // cap 1
	outage   Outage
	over     chan struct{} // closed at the next change of the outage
	flooded  time.Time     // until when the account waits
	asked    int           // sends
	requests int           // of sends and of the listener
	ended    bool          // the thread is closed or deleted
	pictures bool          // pictures are refused as photos
	messages []Shown       // of the bot in the first chat, while it shows previews
	made     int           // of these
	failing  []Fault       // of edits
	bare     bool          // buttons are refused
	written  []string      // by users, in all
	read     int           // of these
}

// goneID is the id of a message that does not exist.
const goneID = "gone"

func (w *memory) flood(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flooded = time.Now().Add(d)
}

func (w *memory) askedFor() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func (w *memory) endThread() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

func (w *memory) refusePhoto() (picture []byte, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pictures = true
	return []byte("picture"), "too many pixels"
}

// refuses returns why a part is not taken as it is.
func (w *memory) refuses(r *Received) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	left := time.Until(w.flooded)
	switch {
	case left > 0:
		return &adapter.Failure{Class: msg.Rate, After: left, Account: w.wrong != "takes the account's wait for a chat's", Err: errors.New("flood")}
	case r.ReplyTo == goneID && w.wrong == "keeps to replies", r.Thread != "" && w.ended && w.wrong == "keeps to threads":
		return &adapter.Failure{Class: msg.Permanent, Err: errors.New("gone")}
	case r.File != "" && w.pictures:
		return w.refusesPhoto(r)
	case r.ReplyTo == goneID && w.wrong != "replies to nothing":
		r.ReplyTo = ""
	case r.Thread != "" && w.ended:
		r.Thread = ""
		if w.wrong != "leaves threads silently" {
			return &adapter.Remark{Text: "sent to the chat, its thread has ended"}
		}
	}
	return nil
}

// refusesPhoto sends a text in place of a picture. The caller holds the lock.
func (w *memory) refusesPhoto(r *Received) error {
	reason := "too many pixels"
	switch w.wrong {
	case "gives pictures up":
		return &adapter.Failure{Class: msg.Permanent, Err: errors.New(reason)}
	case "keeps a picture's text":
		r.Text = ""
		return &adapter.Remark{Text: reason}
	case "gives no reason":
		reason = "sent in another form"
	case "loses pictures":
		r.File = ""
		return &adapter.Remark{Text: reason}
	case "leaves pictures out silently":
		r.Text, r.File = r.Text+": "+r.File, ""
		return nil
	}
	return &adapter.Remark{Text: reason}
}

const (
	longest = 500 // of a part, in bytes
	again   = "(again) "
)

func (w *memory) fail(chatJID string, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[chatJID] = f
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
	parts = append(parts, text)
	for i := range parts {
		if w.repeats {
			parts[i] = edit(parts[i].(string))
		}
	}
	return parts, nil
}

// edit is a part that may be sent twice.
type edit string

func (edit) Repeatable() bool { return true }

func textOf(part adapter.Part) string {
	if e, ok := part.(edit); ok {
		return string(e)
	}
	return part.(string)
}

func (w *memory) Send(ctx context.Context, m *msg.Message, part adapter.Part) (string, error) {
	if w.wrong == "sends one at a time" {
		w.busy <- struct{}{}
		defer func() { <-w.busy }()
	}
	r := Received{ChatJID: m.ChatJID, Thread: m.ThreadID, ReplyTo: m.ReplyToID, Text: textOf(part)}
	if m.Kind == msg.KindFile {
		r.File = m.Attachments[0].Name
	}
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
	if err := w.failed(ctx, r); err != nil {
		return "", err
	}
	err := w.refuses(&r)
	if remark := new(adapter.Remark); err != nil && !errors.As(err, &remark) {
		return "", err
	}
	return w.arrive(r), err
}

func (w *memory) setOutage(o Outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outage = o
	close(w.over)
	w.over = make(chan struct{})
}

// out counts a request, and returns the outage that it meets. A ban without a time lasts some seconds, as a guess.
func (w *memory) out() (o Outage, over <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	if o = w.outage; o.Status == http.StatusTooManyRequests && w.wrong != "hurries through a ban" {
		o.RetryAfter = max(o.RetryAfter, 10*time.Second)
	}
	return o, w.over
}

func (w *memory) requested() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests
}

// failed returns how a send fails in the outage there is.
func (w *memory) failed(ctx context.Context, r Received) error {
	o, _ := w.out()
	class := msg.Ambiguous
	switch o.Kind {
	case None:
		return nil
	case Silent, Unanswering:
		<-ctx.Done()
	case Refusing, ResettingTLS:
		class = msg.Transient
	case CuttingAnswers:
		w.arrive(r)
	case Paging:
		switch o.Status {
		case 403:
			class = msg.Transient
		case 429:
			class = msg.Rate
		}
	}
	if as, ok := map[string]msg.ErrorClass{
		"takes an outage for permanent": msg.Permanent, "takes an outage for transient": msg.Transient,
		"takes an outage for ambiguous": msg.Ambiguous,
	}[w.wrong]; ok {
		class = as
	}
	return &adapter.Failure{Class: class, After: o.RetryAfter, Err: errors.New(string(o.Kind))}
}

// write is what a user does.
func (w *memory) write(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = append(w.written, text)
}

// receive stores what users have written since.
func (w *memory) receive(ctx context.Context, s *adapter.Shell) error {
	for {
		w.mu.Lock()
		n := w.read
		if n == len(w.written) {
			w.mu.Unlock()
			return nil
		}
		text := w.written[n]
		w.mu.Unlock()
		in := adapter.Inbound{Messages: []*msg.Message{{ChatJID: "irc:one", Content: text, PlatformID: strconv.Itoa(n + 1), Sender: "irc:7", Verb: msg.VerbMessage}}}
		var err error
		switch w.wrong {
		case "retries a refused event for ever":
			err = s.Retry(ctx, "storing event failed; retrying", func() error { return s.Receive(ctx, in) })
		case "drops a refused event silently":
			_ = s.Receive(ctx, in)
		default:
			err = s.ReceiveAlways(ctx, in)
		}
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.read++
		w.mu.Unlock()
	}
}

// Listen asks every second whether there is an outage.
func (w *memory) Listen(ctx context.Context, s *adapter.Shell) error {
	for {
		o, over := w.out()
		switch {
		case o.Kind == None:
			s.Connected()
			if err := w.receive(ctx, s); err != nil {
				return err
			}
		case o.Kind == Silent && w.wrong == "waits for the silent":
			select {
			case <-over:
			case <-ctx.Done():
			}
			adapter.Pause(ctx, time.Minute)
		case w.wrong != "notices no outage":
			return &adapter.Failure{Class: msg.Transient, After: o.RetryAfter, Err: errors.New(string(o.Kind))}
		}
		adapter.Pause(ctx, time.Second)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// injectedFault returns the injected fault as the error of the platform.
func (w *memory) injectedFault(ctx context.Context, r Received) error {
	w.mu.Lock()
	f := w.faults[r.ChatJID]
	delete(w.faults, r.ChatJID)
	w.mu.Unlock()
	if f == (Fault{}) {
		return nil
	}
	if f.Arrived {
		w.arrive(r)
	}
	if f.Hangs {
		w.hang(ctx)
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

// hang waits as long as a send may take, or longer.
func (w *memory) hang(ctx context.Context) {
	if w.wrong == "ignores the deadline" {
		<-time.After(10 * time.Minute)
		return
	}
	<-ctx.Done()
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
	g.mu.Lock()
	down := g.outage.Kind != None
	g.mu.Unlock()
	if down {
		return "", errors.New("down")
	}
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
