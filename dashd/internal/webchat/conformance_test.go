package webchat

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/dashd/internal/live"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// The times of the page's scripts, at their longest.
const (
	pageSilence = 40 * time.Second // without an event, after which a stream is opened again
	pageRetry   = 15 * time.Second // before a stream is opened again
	postTimeout = 20 * time.Second
	postRetry   = 30 * time.Second // before a message is sent again
)

// The remote of the web chat is its pages: a send does not call them, so it cannot fail or be repeated. They read
// the rows over a network that can.
func TestPlatform_Conformance(t *testing.T) {
	adaptertest.Run(t, adaptertest.Platform{
		Name: msg.PlatformWeb, Raw: true, Repeats: true, Chats: [2]string{JID("main"), JID("other")}, New: newRemote, Outages: true,
	})
}

func newRemote(t testing.TB, st func() *store.Store) adaptertest.Remote {
	s := serve(t, st())
	pages := []*openPage{s.open(t, "main"), s.open(t, "other")}
	return adaptertest.Remote{
		Connect:   func() adapter.Platform { return Platform{} },
		SetOutage: s.network.SetOutage, Requests: s.network.Requests,
		Settled: func(*msg.Message) { s.hub.Notify() },
		Received: func() (all []adaptertest.Received) {
			for _, p := range pages {
				all = append(all, p.read(t)...)
			}
			return all
		},
	}
}

// served is a web chat on a network in memory.
type served struct {
	network *nettest.Network
	hub     *live.Hub
	client  *http.Client
}

func serve(t testing.TB, st *store.Store) *served {
	log := slog.New(slog.DiscardHandler)
	hub := live.NewHub(func(*http.Request) bool { return true }, log)
	n := nettest.Serve(t, routes(newChat(st, hub, t.TempDir(), log), log, func() string { return "" }))
	transport := &http.Transport{DialContext: n.Dial}
	t.Cleanup(func() {
		hub.Close()
		transport.CloseIdleConnections()
	})
	return &served{network: n, hub: hub, client: &http.Client{Transport: transport}}
}

// openPage follows the events of a chat as the page's scripts do.
type openPage struct {
	client *http.Client
	folder string

	mu      sync.Mutex
	last    int64 // the id of the last event
	current bool  // the stream is open, and was up to date once
	shown   []adaptertest.Received
}

// open opens a page, until the test ends.
func (s *served) open(t testing.TB, folder string) *openPage {
	p := &openPage{client: s.client, folder: folder}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			_ = p.follow(ctx) // until the connection breaks
			p.set(func() { p.current = false })
			adapter.Pause(ctx, pageRetry)
		}
	})
	t.Cleanup(func() {
		cancel()
		following.Wait()
	})
	return p
}

func (p *openPage) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// follow reads the event stream until it ends.
func (p *openPage) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(pageSilence, cancel)
	defer silence.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://web.test/"+p.folder+"/events", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Last-Event-ID", strconv.FormatInt(p.last, 10))
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	for lines := bufio.NewReader(res.Body); ; {
		event, err := readEvent(lines)
		if err == nil {
			silence.Reset(pageSilence)
			err = p.show(event)
		}
		if err != nil {
			return err
		}
	}
}

// readEvent reads one event, or another block of lines.
func readEvent(r *bufio.Reader) (e event, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\n" {
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id, err = strconv.ParseInt(value, 10, 64)
		case "data":
			e.data = value
		}
		if err != nil {
			return e, err
		}
	}
}

// show puts an event on the page. The topics in which agents work follow the messages there are.
func (p *openPage) show(e event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.name {
	case "message":
		var m shown
		if err := json.Unmarshal([]byte(e.data), &m); err != nil {
			return err
		}
		p.last = e.id
		p.shown = append(p.shown, adaptertest.Received{ChatJID: JID(p.folder), Text: m.Content})
	case "typing":
		p.current = true
	}
	return nil
}

// read waits until the page is up to date, and returns what it shows.
func (p *openPage) read(t testing.TB) []adaptertest.Received {
	for waited := time.Duration(0); ; waited += time.Second {
		synctest.Wait()
		p.mu.Lock()
		current, all := p.current, slices.Clone(p.shown)
		p.mu.Unlock()
		if current {
			return all
		}
		if waited > pageSilence+pageRetry {
			t.Error("the page is not connected")
			return all
		}
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
	}
}

// A message is sent again until it is answered, and stored once, in order.
func TestPost_Outage_StoresEachMessageOnce(t *testing.T) {
	for _, tt := range []struct {
		outage adaptertest.Outage
		lasts  time.Duration
	}{
		{adaptertest.Outage{Kind: adaptertest.Refusing}, 30 * time.Minute},
		{adaptertest.Outage{Kind: adaptertest.Silent}, 5 * time.Minute},
		{adaptertest.Outage{Kind: adaptertest.ResettingTLS}, time.Minute},
		{adaptertest.Outage{Kind: adaptertest.Unanswering}, 5 * time.Minute},
		{adaptertest.Outage{Kind: adaptertest.CuttingRequests}, time.Minute},
		{adaptertest.Outage{Kind: adaptertest.CuttingAnswers}, time.Minute},
		{adaptertest.Outage{Kind: adaptertest.Paging, Status: http.StatusOK}, time.Minute},
		{adaptertest.Outage{Kind: adaptertest.Paging, Status: http.StatusBadGateway}, time.Minute},
	} {
		t.Run(fmt.Sprint(tt.outage.Kind, tt.outage.Status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, storeOf(t))
				page := s.open(t, "main")
				s.send(t, "before")
				s.network.SetOutage(tt.outage)
				time.AfterFunc(tt.lasts, func() { s.network.SetOutage(adaptertest.Outage{}) })
				began := time.Now()
				for i := range 3 {
					s.send(t, fmt.Sprint("during ", i))
				}
				if took := time.Since(began); took < tt.lasts || took > tt.lasts+postTimeout+postRetry+time.Second {
					t.Errorf("sent after %v", took)
				}
				s.hub.Notify()
				var got []string
				for _, r := range page.read(t) {
					got = append(got, r.Text)
				}
				if want := []string{"before", "during 0", "during 1", "during 2"}; !slices.Equal(got, want) {
					t.Errorf("stored %q, want %q", got, want)
				}
			})
		})
	}
}

// send sends a message of the page until it is stored.
func (s *served) send(t testing.TB, text string) {
	body, err := json.Marshal(map[string]string{"text": text, "client_id": text})
	if err != nil {
		t.Fatal(err)
	}
	for !s.sent(t, string(body)) {
		time.Sleep(postRetry) //nolint:forbidigo // in a bubble
	}
}

func (s *served) sent(t testing.TB, body string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), postTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://web.test/main/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusAccepted
}

func storeOf(t testing.TB) *store.Store { return storetest.OpenAt(t, storetest.Path(t), nil) }
