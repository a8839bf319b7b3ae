package live

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/httpx"
)

// site serves one stream over connections in memory, whose deadlines follow a test's clock.
// Use it in a synctest bubble.
type site struct {
	t      *testing.T
	hub    *Hub
	ended  atomic.Bool // the login
	served atomic.Int32
	conns  chan net.Conn

	every time.Duration
}

func newSite(t *testing.T, look func(*Stream) error) *site {
	t.Helper()
	s := &site{t: t, conns: make(chan net.Conn)}
	s.hub = NewHub(func(*http.Request) bool { return !s.ended.Load() }, slog.New(slog.DiscardHandler))
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	router.Get("/", func(w http.ResponseWriter, r *http.Request) {
		s.hub.Serve(w, r, s.every, look)
		s.served.Add(1)
	})
	server := &http.Server{Handler: router}
	go func() { _ = server.Serve(s) }()
	t.Cleanup(func() { server.Close() })
	return s
}

func (s *site) Accept() (net.Conn, error) {
	conn, ok := <-s.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (s *site) Close() error   { close(s.conns); return nil }
func (s *site) Addr() net.Addr { return &net.UnixAddr{} }

// page is an open stream as a browser sees it.
type page struct {
	t     *testing.T
	conn  net.Conn
	res   *http.Response
	lines *bufio.Reader
}

// open opens a stream and reads its head.
func (s *site) open() *page {
	s.t.Helper()
	browser, server := net.Pipe()
	s.t.Cleanup(func() { browser.Close() })
	s.conns <- server
	if _, err := io.WriteString(browser, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(browser), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	p := &page{t: s.t, conn: browser, res: res, lines: bufio.NewReader(res.Body)}
	if res.StatusCode == http.StatusOK {
		p.want("retry: 1000\n\n")
	}
	return p
}

// next returns the next block of lines with the empty line after it, "" at the end of the stream.
func (p *page) next() string {
	p.t.Helper()
	var block strings.Builder
	for {
		line, err := p.lines.ReadString('\n')
		block.WriteString(line)
		if err == io.EOF || line == "\n" {
			return block.String()
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *page) want(block string) {
	p.t.Helper()
	if diff := cmp.Diff(block, p.next()); diff != "" {
		p.t.Fatalf("(-want +got):\n%s", diff)
	}
}

// over waits until n streams have ended and the hub has forgotten them.
func (s *site) over(streams int) {
	s.t.Helper()
	synctest.Wait()
	if got, left := int(s.served.Load()), len(s.hub.streams); got != streams || left != 0 {
		s.t.Fatalf("%d streams have ended and %d are left, want %d and 0", got, left, streams)
	}
}

// stopping is the last event of a hub that closes.
const stopping = "event: stopping\ndata: {}\n\n"

func nothing(*Stream) error { return nil }

func TestServe_FirstUpdate_AtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSite(t, func(s *Stream) error { return s.Event("message", 7, map[string]int{"n": 1}) }).open()
		p.want("event: message\nid: 7\ndata: {\"n\":1}\n\n")
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no",
		} {
			if got := p.res.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}

func TestNotify_DuringUpdate_OneMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		gate := make(chan struct{})
		s := newSite(t, func(*Stream) error {
			looks.Add(1)
			<-gate
			return nil
		})
		s.open()
		synctest.Wait()
		for range 5 {
			s.hub.Notify()
		}
		for want := int32(1); want <= 2; want++ {
			synctest.Wait()
			if got := looks.Load(); got != want {
				t.Fatalf("%d looks, want %d", got, want)
			}
			gate <- struct{}{}
		}
		synctest.Wait()
		if got := looks.Load(); got != 2 {
			t.Errorf("%d looks, want 2", got)
		}
		close(gate)
	})
}

// Changes in quick succession are written together, the last one too.
func TestServe_Every_BoundsUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var updates atomic.Int32
		s := newSite(t, func(*Stream) error { updates.Add(1); return nil })
		s.every = time.Second
		s.open()
		for range 25 {
			<-time.After(100 * time.Millisecond)
			s.hub.Notify()
		}
		synctest.Wait()
		if got := updates.Load(); got != 3 { // at 0 s, 1 s and 2 s
			t.Errorf("%d updates in 2.5 s", got)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if got := updates.Load(); got != 4 {
			t.Errorf("%d updates after the last change", got)
		}
		<-time.After(time.Second)
		s.hub.Notify()
		synctest.Wait()
		if got := updates.Load(); got != 5 {
			t.Errorf("%d updates: one after a pause must not wait", got)
		}
	})
}

func TestServe_Stopping_WritesLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, nothing)
		p := s.open()
		synctest.Wait()
		s.hub.Close()
		p.want(stopping)
		p.want("")
		s.over(1)
	})
}

func TestNotify_ReachesEveryStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(s *Stream) error { return s.Event("look", 0, nil) })
		one, two := s.open(), s.open()
		for range 3 {
			one.want("event: look\ndata: null\n\n")
			two.want("event: look\ndata: null\n\n")
			s.hub.Notify()
		}
	})
}

func TestServe_Ping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSite(t, nothing).open()
		for range 3 {
			start := time.Now()
			p.want("event: ping\ndata: {}\n\n")
			if waited := time.Since(start); waited != pingEvery {
				t.Errorf("a ping after %v", waited)
			}
		}
	})
}

func TestServe_End(t *testing.T) {
	for name, end := range map[string]func(*site, *page, chan error){
		"nothing can be read": func(_ *site, _ *page, fail chan error) { fail <- errors.New("no such table") },
		"the page is closed":  func(_ *site, p *page, _ chan error) { p.conn.Close() },
		"the process stops": func(s *site, p *page, _ chan error) {
			s.hub.Close()
			p.want(stopping)
		},
		"the login is over": func(s *site, p *page, _ chan error) {
			s.ended.Store(true)
			p.want("")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fail := make(chan error, 1)
				s := newSite(t, func(*Stream) error {
					select {
					case err := <-fail:
						return err
					default:
						return nil
					}
				})
				p := s.open()
				synctest.Wait()
				if s.served.Load() != 0 {
					t.Fatal("it ended by itself")
				}
				start := time.Now()
				end(s, p, fail)
				s.hub.Notify()
				s.over(1)
				if waited := time.Since(start); waited > pingEvery {
					t.Errorf("it took %v", waited)
				}
			})
		})
	}
}

func TestNotify_LoginEnded_EndsThatLoginsStreamsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(*Stream) error { return nil })
		p := s.open()
		synctest.Wait()
		start := time.Now()
		s.hub.Notify() // another one's
		synctest.Wait()
		if s.served.Load() != 0 {
			t.Fatal("the stream of a valid login has ended")
		}
		s.ended.Store(true)
		s.hub.Notify()
		p.want("")
		s.over(1)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("it took %s", waited)
		}
	})
}

func TestServe_HubClosed_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(s *Stream) error { return s.Event("look", 0, nil) })
		s.hub.Close()
		p := s.open()
		p.want("event: look\ndata: null\n\n")
		p.want(stopping)
		p.want("")
		s.over(1)
	})
}

// A write deadline would outlive the stream and break the next answer.
func TestServe_StreamEnds_ConnectionCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSite(t, func(*Stream) error { return io.EOF }).open()
		p.want("")
		<-time.After(2 * writeTimeout)
		if !p.res.Close {
			t.Error("the connection was said to stay open")
		}
		if _, err := io.WriteString(p.conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err == nil {
			t.Error("the connection takes another request")
		}
	})
}

func TestServe_TooManyStreams_Unavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, nothing)
		pages := make([]*page, maxStreams)
		for i := range pages {
			pages[i] = s.open()
		}
		p := s.open()
		body, err := io.ReadAll(p.lines)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"error":{"kind":"unavailable","message":"too many pages are open (500): close some"}}` + "\n"
		if p.res.StatusCode != http.StatusServiceUnavailable || string(body) != want {
			t.Errorf("one page too many: %d %s", p.res.StatusCode, body)
		}
		pages[0].conn.Close()
		synctest.Wait()
		if pages[0] = s.open(); pages[0].res.StatusCode != http.StatusOK {
			t.Errorf("after one has gone: %d", pages[0].res.StatusCode)
		}
		s.hub.Close()
		for _, p := range pages {
			p.want(stopping)
		}
		s.over(maxStreams + 2)
	})
}

func TestServe_PageDoesNotRead_Closed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(s *Stream) error { return s.Event("message", 1, "unread") })
		s.open()
		<-time.After(writeTimeout - 1)
		synctest.Wait()
		if s.served.Load() != 0 {
			t.Error("it was given less time")
		}
		<-time.After(1)
		s.over(1)
	})
}

func TestEvent_HostileData_OneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := []string{
			"\n\nevent: x\ndata: {}\n\n", "\r\rid: 9\r", "\r\n\r\n", "a\u2028b\u2029c", "\x00\x1b[2J", "</script>", `"}`, "data: 1", "\ufeff",
		}
		s := newSite(t, func(s *Stream) error {
			for i, text := range texts {
				if err := s.Event("message", int64(i+1), map[string]string{"text": text}); err != nil {
					return err
				}
			}
			return s.Event("broken", 0, make(chan int))
		})
		p := s.open()
		for i, want := range texts {
			lines := strings.Split(p.next(), "\n")
			if len(lines) != 5 || lines[0] != "event: message" || lines[1] != "id: "+string(rune('1'+i)) {
				t.Fatalf("%q became %q", want, lines)
			}
			var data struct{ Text string }
			line, ok := strings.CutPrefix(lines[2], "data: ")
			if err := json.Unmarshal([]byte(line), &data); !ok || err != nil || data.Text != want || strings.ContainsAny(line, "\r\u2028\u2029<") {
				t.Errorf("%q became %q: %v", want, line, err)
			}
		}
		p.want("") // what is not JSON is an error, not an event
		s.over(1)
	})
}
