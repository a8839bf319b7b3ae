package httpx

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/apierr"
)

// verified answers with the request's body and who asks; secrets alone get in.
func verified(secret string) http.Handler {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		JSON(w, http.StatusCreated, string(body)+" by "+By(r))
	})
	return Verify("routd", func() string { return secret })(Bearer(secret)(handler))
}

// capture is a proxy on the way to a daemon: it keeps the requests, and may change one or its answer.
type capture struct {
	to      http.Handler
	request func(*http.Request)
	answer  func(*httptest.ResponseRecorder)

	seen   []*http.Request
	bodies []string
}

func (c *capture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	seen := r.Clone(context.Background())
	seen.Body = io.NopCloser(bytes.NewReader(body))
	c.seen, c.bodies = append(c.seen, seen), append(c.bodies, string(body))
	r.Body = io.NopCloser(bytes.NewReader(body))
	if c.request != nil {
		c.request(r)
	}
	rec := httptest.NewRecorder()
	c.to.ServeHTTP(rec, r)
	if c.answer != nil {
		c.answer(rec)
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// do sends one request by a proxy.
func do(t *testing.T, c *capture, secret string) (string, error) {
	t.Helper()
	server := httptest.NewServer(c)
	defer server.Close()
	client := NewClient("routd", server.URL+"/base", secret)
	defer client.HTTP.CloseIdleConnections()
	var said string
	err := client.Do(WithBy(t.Context(), "cli"), http.MethodPost, "/v1/routes?a=b%20c&d", map[string]string{"target": "main"}, &said)
	return said, err
}

// strip is a proxy that takes the path of the base URL away.
func strip(r *http.Request) {
	r.URL.Path, r.RequestURI = strings.TrimPrefix(r.URL.Path, "/base"), strings.TrimPrefix(r.RequestURI, "/base")
}

func TestSigned_RequestAndAnswer_AreTaken_SecretStays(t *testing.T) {
	t.Parallel()
	c := &capture{to: verified("s3cret"), request: strip}
	said, err := do(t, c, "s3cret")
	if err != nil || said != `{"target":"main"} by cli` {
		t.Errorf("%q, %v", said, err)
	}
	var sent bytes.Buffer
	if err := c.seen[0].Write(&sent); err != nil || strings.Contains(sent.String(), "s3cret") || !strings.Contains(sent.String(), "Authorization: Arizuko ") {
		t.Errorf("%v: sent %s", err, &sent)
	}
}

// TestSigned_AnyChange_IsRefused: a signed answer can't be changed on the way, and an unsigned one doesn't count.
func TestSigned_AnyChange_IsRefused(t *testing.T) {
	t.Parallel()
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { strip(r); r.Header.Set(name, value) }
	}
	for name, c := range map[string]*capture{
		"method":        {request: func(r *http.Request) { strip(r); r.Method = http.MethodPut }},
		"path":          {request: func(r *http.Request) { strip(r); r.URL.Path = "/v1/groups" }},
		"query":         {request: func(r *http.Request) { strip(r); r.URL.RawQuery += "&e=f" }},
		"body":          {request: func(r *http.Request) { strip(r); r.Body = io.NopCloser(strings.NewReader(`{"target":"evil"}`)) }},
		"no body":       {request: func(r *http.Request) { strip(r); r.Body = io.NopCloser(strings.NewReader("")) }},
		"who":           {request: header("Arizuko-By", "web:operator")},
		"type":          {request: header("Content-Type", "text/plain")},
		"no signature":  {request: func(r *http.Request) { strip(r); r.Header.Del("Authorization") }},
		"half of one":   {request: header("Authorization", "Arizuko 1 2")},
		"answer":        {request: strip, answer: func(a *httptest.ResponseRecorder) { a.Body = bytes.NewBufferString(`"evil"`) }},
		"status":        {request: strip, answer: func(a *httptest.ResponseRecorder) { a.Code = http.StatusOK }},
		"unsigned":      {request: strip, answer: func(a *httptest.ResponseRecorder) { a.Header().Del(answerHeader) }},
		"other daemon":  {request: strip, to: Verify("gated", func() string { return "s3cret" })(verified("s3cret"))},
		"other secret":  {request: strip, to: verified("other")},
		"no secret":     {request: strip, to: verified("")},
		"knows nothing": {to: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { JSON(w, http.StatusOK, "evil") })},
	} {
		if c.to == nil {
			c.to = verified("s3cret")
		}
		said, err := do(t, c, "s3cret")
		if apierr.KindOf(err) != apierr.Unavailable || !IsForeign(err) || said != "" || !strings.Contains(err.Error(), "without a valid signature") {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
}

func TestSigned_Replayed_IsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		daemon := verified("s3cret")
		<-time.After(time.Second)
		dial := ServeInBubble(t, daemon)
		client := NewClient("routd", "http://memory", "s3cret")
		defer client.HTTP.CloseIdleConnections()
		var wire bytes.Buffer
		client.DialWith(func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return recorded{conn, &wire}, err
		})
		if err := client.Do(t.Context(), http.MethodPost, "/v1/routes", "one", new(string)); err != nil {
			t.Fatal(err)
		}
		replay := func(to http.Handler) (int, string) {
			req, err := http.ReadRequest(newReader(wire.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			rec := httptest.NewRecorder()
			to.ServeHTTP(rec, req)
			return rec.Code, rec.Body.String()
		}
		if code, body := replay(daemon); code != http.StatusUnauthorized || !strings.Contains(body, "came before") {
			t.Errorf("at once: %d %s", code, body)
		}
		if code, body := replay(verified("s3cret")); code != http.StatusCreated { // it started in the same millisecond
			t.Errorf("another process: %d %s", code, body)
		}
		<-time.After(time.Millisecond)
		if code, body := replay(verified("s3cret")); code != http.StatusUnauthorized || !strings.Contains(body, "before this process started") {
			t.Errorf("after a restart: %d %s", code, body)
		}
		<-time.After(2 * maxClockSkew)
		if code, body := replay(daemon); code != http.StatusUnauthorized || !strings.Contains(body, "clock") {
			t.Errorf("later: %d %s", code, body)
		}
	})
}

// TestNonces_AreForgotten: memory holds those of one minute.
func TestNonces_AreForgotten(t *testing.T) {
	t.Parallel()
	n := &nonces{seen: map[string]bool{}}
	for i := range int64(100_000) {
		if err := n.use(strconv.FormatInt(i, 10), i*100, i*100); err != nil {
			t.Fatal(i, err)
		}
		if want := maxClockSkew.Milliseconds()/100 + 1; int64(len(n.order)) > want || len(n.seen) > len(n.order) {
			t.Fatalf("%d of %d nonces are kept, at most %d are of use", len(n.seen), len(n.order), want)
		}
	}
}

// TestUnsigned_Service_IsTakenAtItsWord: it is an operator's own, and still gets no secret.
func TestNonces_ClockJumpsAheadAndBack_NoneIsTakenTwice(t *testing.T) {
	const at, ahead = int64(10_000_000), int64(13_600_000)
	for _, signed := range []int64{at, at - 30_000, at + 59_000} {
		n := &nonces{seen: map[string]bool{}}
		errs := []error{n.use("A", signed, at), n.use("B", ahead, ahead), n.use("A", signed, at+1000), n.use("C", signed+2000, at+2000)}
		if errs[0] != nil || errs[1] != nil || errs[2] == nil || errs[3] != nil {
			t.Errorf("signed at %d: %v, want the third refused alone", signed, errs)
		}
	}
}

func TestUnsigned_Service_IsTakenAtItsWord(t *testing.T) {
	t.Parallel()
	c := &capture{to: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { JSON(w, http.StatusOK, "noted") })}
	server := httptest.NewServer(c)
	defer server.Close()
	client := NewClient("tickets", server.URL+"/hook", "s3cret").AcceptUnsigned()
	defer client.HTTP.CloseIdleConnections()
	var said string
	if err := client.Do(t.Context(), http.MethodPost, "", "row", &said); err != nil || said != "noted" {
		t.Errorf("%q, %v", said, err)
	}
	var sent bytes.Buffer
	if err := c.seen[0].Write(&sent); err != nil || strings.Contains(sent.String(), "s3cret") {
		t.Errorf("%v: sent %s", err, &sent)
	}
	// The service can tell who asks: the signature is over the path that it sees.
	request := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(c.bodies[0]))
	request.Header = c.seen[0].Header
	fields := strings.Fields(request.Header.Get("Authorization"))[1:]
	if _, err := verify(request, "tickets", "s3cret", fields, &nonces{seen: map[string]bool{}}); err != nil {
		t.Error(err)
	}
}
