package tools

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

// gate admits requests that nothing answers: their bodies are read, and kept until release is closed.
type gate struct {
	t       *testing.T
	server  *Server
	handler http.Handler
	tokens  *Tokens
	release chan struct{}
	read    atomic.Int64 // bytes of all bodies
	held    atomic.Int64 // bytes of those that have a place
	begun   atomic.Int64 // requests whose bodies are read
	status  [600]atomic.Int64
}

func newGate(t *testing.T) *gate {
	g := &gate{t: t, tokens: &Tokens{}, release: make(chan struct{})}
	g.server = &Server{tokens: g.tokens, calls: newCalls(nil, nil), bytes: semaphore.NewWeighted(maxAllBytes)}
	g.handler = g.server.authenticate(g.server.admit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.begun.Add(1)
		n, _ := io.Copy(io.Discard, r.Body)
		g.held.Add(n)
		select {
		case <-g.release:
		case <-r.Context().Done():
		}
	})))
	return g
}

// run is a run of its own.
func (g *gate) run(id int64) *Access {
	access := g.tokens.Issue(msg.Run{ID: id, Folder: "acme"}, nil)
	g.t.Cleanup(access.Close)
	return access
}

// counted is a body that counts the bytes read of it.
type counted struct {
	io.Reader
	read *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// send sends n requests of size bytes each, at once, and waits until each is answered or waits.
func (g *gate) send(access *Access, n, size int, chunked bool) {
	for range n {
		go func() {
			r := httptest.NewRequestWithContext(g.t.Context(), http.MethodPost, Path, counted{strings.NewReader("{" + strings.Repeat("x", size-1)), &g.read})
			r.ContentLength = int64(size)
			if chunked {
				r.ContentLength = -1
			}
			r.Header.Set("Authorization", "Bearer "+access.Token())
			w := httptest.NewRecorder()
			g.handler.ServeHTTP(w, r)
			g.status[w.Code].Add(1)
			if w.Code == http.StatusTooManyRequests && (w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "try again")) {
				g.t.Errorf("refused with %v %s", w.Header(), w.Body)
			}
		}()
	}
	synctest.Wait()
}

func (g *gate) check(when string, status int, want int64) {
	g.t.Helper()
	if got := g.status[status].Load(); got != want {
		g.t.Errorf("%s: %d requests have status %d, want %d", when, got, status, want)
	}
}

func TestAdmit_ManyLargeBodies_OnlyThoseWithRoomAreRead(t *testing.T) {
	t.Parallel()
	for name, chunked := range map[string]bool{"with a length": false, "chunked": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t)
				const n = 400
				g.send(g.run(1), n, maxCallBody, chunked)
				const refused = n - maxConcurrentCalls - maxQueuedCalls
				g.check("at once", http.StatusTooManyRequests, refused)
				if held, read := g.held.Load(), g.read.Load(); held != maxRunBytes || read != held+refused*maxCallBody {
					t.Errorf("%d bytes are held, %d read: what waits is not to be read", held, read)
				}
				time.Sleep(queueTimeout) //nolint:forbidigo // in a bubble
				synctest.Wait()
				g.check("after the time of the queue", http.StatusTooManyRequests, n-maxRunBytes/maxCallBody)
				close(g.release)
				synctest.Wait()
				g.check("in the end", http.StatusOK, maxRunBytes/maxCallBody)
				if held := g.held.Load(); held != maxRunBytes {
					t.Errorf("%d bytes are held, want %d", held, maxRunBytes)
				}
			})
		})
	}
}

func TestAdmit_ManyRunsWithLargeBodies_AllBoundedSmallOnesServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t)
		const runs = 30
		for id := range int64(runs) {
			g.send(g.run(id), 50, maxCallBody, false)
		}
		if held := g.held.Load(); held != maxAllBytes {
			t.Errorf("%d bytes are held, want %d", held, maxAllBytes)
		}
		g.send(g.run(runs), 1, smallBody, false)
		if begun := g.begun.Load(); begun != maxAllBytes/maxCallBody+1 {
			t.Errorf("%d requests are served, want the small one of another run, too", begun)
		}
		close(g.release)
		synctest.Wait()
		g.check("in the end", http.StatusOK, 1+runs*(maxConcurrentCalls+maxQueuedCalls))
	})
}

func TestAdmit_RunEndsClientLeaves_QueueIsEmpty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t)
		access := g.run(1)
		g.send(access, maxConcurrentCalls+maxQueuedCalls, 100, false)
		access.Close()
		synctest.Wait()
		g.check("after the run", http.StatusTooManyRequests, maxQueuedCalls)
		close(g.release)
		synctest.Wait()
		if len(access.capacity.entered)+len(access.capacity.slots)+len(access.capacity.parked) != 0 || !access.capacity.bytes.TryAcquire(maxRunBytes) {
			t.Error("places are taken by requests that have ended")
		}
	})
}

func TestAdmit_BodyTooLargeOrBatch_IsRefused(t *testing.T) {
	f := parallel(t)
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"too large": {strings.Repeat(" ", maxCallBody+1), http.StatusRequestEntityTooLarge},
		"batch":     {" \n[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 3000) + `{"jsonrpc":"2.0","id":2,"method":"ping"}]`, http.StatusBadRequest},
		"single":    {` {"jsonrpc":"2.0","id":1,"method":"ping"}`, http.StatusOK},
		"unknown":   {` {"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, http.StatusOK},
	} {
		for _, version := range []string{"", "2025-03-26", "2025-06-18"} {
			status, _ := f.request(c.body, func(r *http.Request) {
				if version != "" {
					r.Header.Set("MCP-Protocol-Version", version)
				}
			})
			if status != c.want {
				t.Errorf("%s, version %q: status %d, want %d", name, version, status, c.want)
			}
		}
	}
}

// The largest arguments that a tool's schema allows fit into a request, even if a client escapes each character of a text as a surrogate pair.
func TestAdmit_LargestArgumentsOfEachTool_Fit(t *testing.T) {
	t.Parallel()
	for _, tool := range Registry() {
		limit := maxCallBody
		if tool.Name == "ask_user" || tool.Name == "get_attachment" {
			limit = maxParkedBody
		}
		if size := 1024 + largest(tool.input); size > limit {
			t.Errorf("%s has arguments of %d bytes, a request at most %d", tool.Name, size, limit)
		}
	}
}

// largest is the size of the largest value that a schema allows, in JSON. Short texts are names: ASCII, in quotes.
func largest(s *jsonschema.Schema) (size int) {
	switch {
	case s.MaxLength != nil && *s.MaxLength <= maxJID:
		return *s.MaxLength + 3
	case s.MaxLength != nil:
		return 12**s.MaxLength + 3
	case s.Items != nil && s.MaxItems != nil:
		return *s.MaxItems * largest(s.Items)
	case s.Properties == nil:
		return 30 // a number
	}
	for name, property := range s.Properties {
		size += len(name) + 4 + largest(property)
	}
	return size
}

// parkedCalls has the fixture's run make calls that wait, and returns when all do.
func (f *fixture) parkedCalls(n int, tool, arguments string) (release func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{}, n)
	for range n {
		go func() {
			defer func() { done <- struct{}{} }()
			session, err := f.client(f.access.Token())
			if err == nil {
				_, _ = session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: rawJSON(f.fill(arguments))}) // until it is cancelled
			}
		}()
	}
	storetest.Eventually(f.t, "the calls to wait", func() bool { return len(f.access.capacity.parked) == n })
	return func() {
		cancel()
		for range n {
			<-done
		}
	}
}

func TestAdmit_CallsThatWaitForUserOrFile_HoldUpNoOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, arguments string }{
		{"ask_user", `{"question":"Which?","options":["a","b"]}`},
		{"get_attachment", `{"message_id":OWN_FILE}`},
	} {
		t.Run(c.tool, func(t *testing.T) {
			f := parallel(t)
			f.holdAnswers = true
			f.exec(`UPDATE messages SET pending_files = 1 WHERE id = ?`, f.file.ID)
			release := f.parkedCalls(maxParkedCalls, c.tool, c.arguments)
			defer release()
			f.works("send_message", `{"text":"meanwhile"}`)
			f.refused(c.tool, c.arguments, "waiting already")
			if n := len(f.access.capacity.slots); n != 0 {
				t.Errorf("%d slots are taken", n)
			}
		})
	}
}

func TestPark_LargeCall_IsRefusedKeepsItsPlace(t *testing.T) {
	t.Parallel()
	r, all := newCapacity(), semaphore.NewWeighted(maxAllBytes)
	p := storetest.Must(r.take(t.Context(), all, maxParkedBody+1))(t)
	if err := p.park(); err == nil || !strings.Contains(err.Error(), "shorten its arguments") || len(r.parked) != 0 || len(r.slots) != 1 {
		t.Errorf("%v, %d parked, %d slots", err, len(r.parked), len(r.slots))
	}
	p.leave()
	if len(r.entered) != 0 || !all.TryAcquire(maxAllBytes) {
		t.Error("its place is taken still")
	}
}

// A client of the SDK gets an error for the call, and its session goes on.
func TestAdmit_NoRoom_ClientMayTryAgain(t *testing.T) {
	t.Parallel()
	hangs, begun, release := holding("hangs", Adds)
	f := newFixture(t, append(Registry(), hangs)...)
	session := storetest.Must(f.client(f.access.Token()))(t)
	const n = maxConcurrentCalls + maxQueuedCalls
	answered := make(chan int, n)
	for range n {
		go func() { answered <- f.post("hangs", "{}", f.access.Token()) }()
	}
	for range maxConcurrentCalls {
		<-begun
	}
	storetest.Eventually(t, "the queue to be full", func() bool { return len(f.access.capacity.entered) == n })
	text := storetest.Must(json.Marshal(map[string]string{"text": strings.Repeat("x", maxText)}))(t)
	params := &mcp.CallToolParams{Name: "send_message", Arguments: rawJSON(text)}
	if _, err := session.CallTool(t.Context(), params); err == nil || !strings.Contains(err.Error(), http.StatusText(http.StatusTooManyRequests)) {
		t.Errorf("without room: %v", err)
	}
	close(release)
	for range n {
		if status := <-answered; status != http.StatusOK {
			t.Errorf("a call that waited has status %d", status)
		}
	}
	if result, err := session.CallTool(t.Context(), params); err != nil || result.IsError {
		t.Errorf("afterwards: %v", err)
	}
}
