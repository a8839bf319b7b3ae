package proxy

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"arizuko/pkg/egress"
)

const value = "s3cret+value/with=signs"

// TestSecrets: a server that a rule names gets the secret in place of its token, and the agent never does.
func TestSecrets(t *testing.T) {
	t.Parallel()
	// The upstream repeats all that it was sent, in pieces of a byte.
	echo := func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		body, _ := io.ReadAll(r.Body)
		text := fmt.Sprintf("range=%s auth=%s key=%s basic=%s:%s q=%s raw=%s body=%s", r.Header.Get("Range"), r.Header.Get("Authorization"), r.Header.Get("X-Key"),
			user, password, r.URL.Query().Get("key"), r.URL.RawQuery, body)
		w.Header().Set("X-Echo", r.Header.Get("X-Key"))
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("X-Raw", text)
		defer w.Header().Set(http.TrailerPrefix+"X-Trailer", text)
		if r.URL.Path == "/zip" {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			defer zip.Close()
			_, _ = io.WriteString(zip, text)
			return
		}
		if r.URL.Path == "/br" {
			w.Header().Set("Content-Encoding", "br")
		}
		for _, c := range []byte(text) {
			_, _ = w.Write([]byte{c})
			_ = http.NewResponseController(w).Flush()
		}
	}
	w := newWorld(t, echo, egress.Rule{Host: "api.test", Action: egress.Inject, Secret: "key"},
		egress.Rule{Host: "api.test:8080", Action: egress.Inject, Secret: "key"},
		egress.Rule{Host: "other.test", Method: "GET", Action: egress.Pass},
		egress.Rule{Host: "two.test", Action: egress.Inject, Secret: "absent"})
	token, absent := w.setSecret("key", value), w.Token("main", "absent")
	foreign := w.Token("other", "key")
	for name, tt := range map[string]struct {
		url    string
		header map[string]string
		status int
		want   string // in the answer's body
		secret string // in the receipt
		reason string // in the receipt
	}{
		"header":            {"https://api.test/", map[string]string{"X-Key": token}, 200, "key=" + token, "key", ""},
		"bearer":            {"https://api.test/", map[string]string{"Authorization": "Bearer " + token}, 200, "auth=Bearer " + token, "key", ""},
		"basic":             {"https://api.test/", map[string]string{"Authorization": encodeBasic("me:" + token)}, 200, "basic=me:" + token, "key", ""},
		"query":             {"https://api.test/?a=1&key=" + token, nil, 200, "q=" + token, "key", ""},
		"compressed":        {"https://api.test/zip", map[string]string{"X-Key": token}, 200, "key=" + token, "key", ""},
		"compressed oddly":  {"https://api.test/br", map[string]string{"X-Key": token}, 502, "cannot be searched", "key", "cannot be searched"},
		"in pieces":         {"https://api.test/", map[string]string{"X-Key": token, "Range": "bytes=9-12"}, 200, "range= ", "key", ""},
		"in a title":        {"https://api.test/", map[string]string{"X-Title": token}, 403, "where no secret belongs", "", "X-Title"},
		"in a title, coded": {"https://api.test/", map[string]string{"X-Title": encodeBasic("me:" + token)}, 403, "where no secret belongs", "", "X-Title"},
		"in metadata":       {"https://api.test/", map[string]string{"X-Amz-Meta-Key": token}, 403, "where no secret belongs", "", "X-Amz-Meta-Key"},
		"in a text":         {"https://api.test/?token=mine&text=" + token, nil, 403, "where no secret belongs", "", "text"},
		"in a text, split":  {"https://api.test/?key=;text=" + token, nil, 403, "where no secret belongs", "", "text"},
		"none":              {"https://api.test/", nil, 200, "key= ", "", ""},
		"other host":        {"https://other.test/", map[string]string{"X-Key": token}, 403, "the secret key must not be sent to other.test", "", "the secret key"},
		"other, query":      {"https://other.test/?key=" + token, nil, 403, "the secret key", "", "the secret key"},
		"other, basic":      {"https://other.test/", map[string]string{"Authorization": encodeBasic(token + ":")}, 403, "the secret key", "", "the secret key"},
		"other group's":     {"https://api.test/", map[string]string{"X-Key": foreign}, 403, "no rule has a secret for it", "", "no rule"},
		"not there":         {"https://two.test/", map[string]string{"X-Key": absent}, 502, "there is no such secret", "absent", "there is no such secret"},
		"http":              {"http://api.test/", map[string]string{"X-Key": token}, 403, "use https", "", "use https"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range tt.header {
			r.Header.Set(k, v)
		}
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
				t.Errorf("%s: a response %d with %v", name, status, header)
				return nil
			},
		}))
		res, err := w.client().Do(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != tt.status || !strings.Contains(string(body), tt.want) {
			t.Errorf("%s: %d %s, %v", name, res.StatusCode, body, err)
		}
		got := w.last()
		if tt.status == 200 && tt.secret != "absent" && got.Secret != tt.secret || !strings.Contains(got.Reason, tt.reason) {
			t.Errorf("%s: receipt %+v", name, got)
		}
		for _, text := range []string{fmt.Sprint(res.Header, res.Trailer), string(body), fmt.Sprintf("%+v", got)} {
			for _, form := range []string{value, url.QueryEscape(value), strings.TrimPrefix(encodeBasic("me:"+value), "Basic ")} {
				if strings.Contains(text, form) {
					t.Errorf("%s: the secret is in %s", name, text)
				}
			}
		}
	}
	for _, dialed := range w.dialed {
		if !strings.HasPrefix(dialed, "93.184.216.34:") {
			t.Errorf("dialed %s", dialed)
		}
	}
}

func TestScrubber(t *testing.T) {
	t.Parallel()
	x := &exchange{secrets: []secret{{"a", "TOKEN", "abab&c"}, {"b", "SLASH", "x/y"}}}
	for _, text := range []string{"", "ab", "xabab&cy", "ababab&cz abab", "abab&", "aababab%26c", "abab&abab&c", `abab\u0026c`, `x/y x\/y x%2Fy`} {
		want := strings.NewReplacer("abab&c", "TOKEN", "abab%26c", "TOKEN", `abab\u0026c`, "TOKEN", "x/y", "SLASH", `x\/y`, "SLASH", "x%2Fy", "SLASH").Replace(text)
		for name, in := range map[string]io.Reader{"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text))} {
			got, err := io.ReadAll(x.scrubBody(io.NopCloser(in), false, func() {}))
			if err != nil || string(got) != want {
				t.Errorf("%s of %q: %q, %v, want %q", name, text, got, err, want)
			}
		}
	}
	_, err := io.ReadAll(x.scrubBody(io.NopCloser(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("abab")))), false, func() {}))
	if !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("the error of a body became %v", err)
	}
}

// TestRefresh: agents refresh with the token that they have, and never see the tokens that the server has.
func TestRefresh(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	generation, used, text := 1, map[string]bool{}, ""
	server := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/api" {
			fmt.Fprintf(w, "%v", r.Header.Get("Authorization") == fmt.Sprintf("Bearer access-%d", generation))
			return
		}
		var got string
		if r.Header.Get("Content-Type") == "application/json" {
			var body map[string]string
			_ = json.NewDecoder(r.Body).Decode(&body)
			got = body["refresh_token"]
		} else {
			got, text = r.FormValue("refresh_token"), r.FormValue("text")
		}
		if got != fmt.Sprintf(`refresh-"%d`, generation) || used[got] {
			http.Error(w, "invalid_grant "+got, http.StatusBadRequest)
			return
		}
		used[got] = true
		generation++
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprintf("access-%d", generation),
			"refresh_token": fmt.Sprintf(`refresh-"%d`, generation), "expires_in": 3600, "note": fmt.Sprintf("access-%d", generation)})
	}
	w := newWorld(t, server, egress.Rule{Host: "auth.test", Action: egress.Inject, Secret: "sub"})
	access := w.setSecret("sub", `{"access_token":"access-1","refresh_token":"refresh-\"1","plan":"max"}`)
	refresh := w.Token("main", "sub.refresh")
	c := w.client()
	post := func(kind, body string) (int, string) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://auth.test/token", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		return do(c, r)
	}
	var all sync.WaitGroup
	for i := range 8 { // at the same time: each gets its turn
		all.Go(func() {
			kind, body := "application/json", fmt.Sprintf(`{"grant_type":"refresh_token","refresh_token":%q}`, refresh)
			if i%2 == 0 {
				kind, body = "application/x-www-form-urlencoded", "grant_type=refresh_token&refresh_token="+refresh
			}
			status, answer := post(kind, body)
			var got map[string]any
			if err := json.Unmarshal([]byte(answer), &got); status != 200 || err != nil || got["access_token"] != access ||
				got["refresh_token"] != refresh || got["expires_in"] != 3600.0 || strings.Contains(answer, "access-") {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
	all.Wait()
	for _, body := range []string{`{"prompt":"REFRESH"}`, `{"refresh_token":"REFRESH","prompt":"REFRESH"}`, `{"in":{"refresh_token":"REFRESH"}}`} {
		if status, answer := post("application/json", strings.ReplaceAll(body, "REFRESH", refresh)); status != 400 || strings.Contains(answer, "refresh-") {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://auth.test/api", nil)
	r.Header.Set("Authorization", "Bearer "+access)
	if status, body := do(c, r); status != 200 || body != "true" {
		t.Errorf("with the new token: %d %s", status, body)
	}
	if stored, err := w.store.Get("sub"); err != nil || stored != `{"access_token":"access-9","plan":"max","refresh_token":"refresh-\"9"}` {
		t.Errorf("stored %s, %v", stored, err)
	}
	mu.Lock()
	generation = 100 // another client has refreshed
	mu.Unlock()
	for _, body := range []string{"text=" + refresh, "refresh_token=" + refresh + "&text=" + refresh} {
		if status, answer := post("application/x-www-form-urlencoded", body); status != 400 || text != refresh {
			t.Errorf("%s: %d %s, and the server got the text %s", body, status, answer, text)
		}
	}
	if status, body := post("application/json", fmt.Sprintf(`{"refresh_token":%q}`, refresh)); status != 400 || body != "invalid_grant "+refresh+"\n" {
		t.Errorf("refused: %d %s", status, body)
	}
}

// TestRefresh_AgentLeaves: tokens that a server has replaced are stored, whether or not the agent waits for them.
func TestRefresh_AgentLeaves(t *testing.T) {
	t.Parallel()
	arrived, gone := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-gone
		_, _ = io.WriteString(w, `{"access_token":"access-2","refresh_token":"refresh-2"}`)
	}, egress.Rule{Host: "auth.test", Action: egress.Inject, Secret: "sub"})
	w.setSecret("sub", `{"access_token":"access-1","refresh_token":"refresh-1"}`)
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "https://auth.test/token", strings.NewReader("refresh_token="+w.Token("main", "sub.refresh")))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := w.client()
	go func() {
		<-arrived
		cancel()
	}()
	if status, body := do(client, r); status != 0 {
		t.Errorf("%d %s", status, body)
	}
	time.AfterFunc(50*time.Millisecond, func() { close(gone) }) // the proxy has noticed by then that the agent has gone
	<-w.ended
	if got, err := w.store.Get("sub"); err != nil || got != `{"access_token":"access-2","refresh_token":"refresh-2"}` {
		t.Errorf("stored %s, %v", got, err)
	}
}

// TestAsk: what no rule decides is sent only after a user's yes, and is what the user was asked about.
func TestAsk(t *testing.T) {
	t.Parallel()
	var sent []string
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.Method+" "+r.RequestURI+" "+string(body))
	})
	yes := func(_ context.Context, r *egress.Receipt, query string, body []byte) (bool, string, error) {
		if r.State != egress.Asked || r.ID == 0 || w.last().State != egress.Asked {
			t.Errorf("asked about %+v, stored %+v", r, w.last())
		}
		r.By, r.AskID = "telegram:1", 5
		return query == "q=1" && string(body) == "payload", "it is not what was expected", nil
	}
	for name, tt := range map[string]struct {
		method, body string
		ask          func(context.Context, *egress.Receipt, string, []byte) (bool, string, error)
		status       int
		want         string
		sent         string
		state        egress.State
	}{
		"yes":     {"POST", "payload", yes, 200, "", "POST /x?q=1 payload", egress.Sent},
		"no":      {"POST", "other", yes, 403, "arizuko: it is not what was expected\n", "", egress.Refused},
		"no user": {"DELETE", "", nil, 403, "arizuko: no approver can be reached\n", "", egress.Refused},
		"error": {"POST", "payload", func(context.Context, *egress.Receipt, string, []byte) (bool, string, error) {
			return false, "", errors.New("broken")
		}, 502, "arizuko: no user could be asked: broken\n", "", egress.Refused},
		"too large": {"POST", strings.Repeat("x", maxAskBody+1), yes, 403, "too large to ask about", "", egress.Refused},
		"GET": {"GET", "", func(_ context.Context, r *egress.Receipt, _ string, body []byte) (bool, string, error) {
			return len(body) == 0, "", nil
		}, 200, "", "GET /x?q=1 ", egress.Sent},
	} {
		w.mu.Lock()
		w.ask, w.looked, sent = tt.ask, nil, nil
		w.mu.Unlock()
		for _, streamed := range []bool{false, true} {
			sent = nil
			var body io.Reader = strings.NewReader(tt.body)
			if streamed {
				body = io.MultiReader(body) // of unknown length
			}
			if tt.body == "" {
				body = nil
			}
			r, err := http.NewRequestWithContext(t.Context(), tt.method, "https://asked.test/x?q=1", body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Idempotency-Key", "k")
			status, answer := do(w.client(), r)
			if status != tt.status || !strings.Contains(answer, tt.want) || strings.Join(sent, "|") != tt.sent {
				t.Errorf("%s: %d %s, sent %q", name, status, answer, sent)
			}
			if tt.sent == "" && w.looked != nil {
				t.Errorf("%s: a name server was asked about %q", name, w.looked)
			}
			got := <-w.ended
			if got.State != tt.state || got.EndedAt == 0 || got.Path != "/x?q=…" || got.RunID != 7 || got.TurnID != 3 || got.Folder != "main" ||
				got.State == egress.Sent && (got.BodyHash == "" || got.BytesOut != int64(len(tt.body)) || got.Status != 200) {
				t.Errorf("%s: receipt %+v", name, got)
			}
		}
	}
}

// TestAsk_AgentLeaves: a question whose agent has gone is not sent, whatever the answer is.
func TestAsk_AgentLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	asked := make(chan struct{})
	w.ask = func(ctx context.Context, _ *egress.Receipt, _ string, _ []byte) (bool, string, error) {
		close(asked)
		<-ctx.Done()
		return true, "", nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://asked.test/", strings.NewReader("x"))
		_, _ = do(w.client(), r)
	}()
	<-asked
	cancel()
	<-done
	if got := <-w.ended; got.State != egress.Refused || got.Reason != "the agent did not wait for the answer" {
		t.Errorf("receipt %+v", got)
	}
	if len(w.looked) > 0 {
		t.Errorf("before an answer, the name servers of %q learned what an agent wrote", w.looked)
	}
}

// TestAsk_Many: while users think, a body takes no more memory than it has bytes, and one agent leaves room for others.
func TestAsk_Many(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	var asked, all sync.WaitGroup
	answered := make(chan struct{})
	w.ask = func(context.Context, *egress.Receipt, string, []byte) (bool, string, error) {
		asked.Done()
		<-answered
		return true, "", nil
	}
	asked.Add(maxAsked)
	for range maxAsked {
		body, upload := io.Pipe()
		go func() {
			_, _ = io.WriteString(upload, "x")
			_ = upload.Close()
		}()
		all.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://asked.test/", body)
			if status, answer := do(w.client(), r); status != 200 {
				t.Error(status, answer)
				asked.Done()
			}
		})
	}
	asked.Wait()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://asked.test/", nil)
	if status, answer := do(w.client(), r); status != 503 {
		t.Errorf("one more: %d %s", status, answer)
	}
	close(answered)
	all.Wait()
}

// TestAsk_ConnectionBreaks: a request that was allowed once is not sent again, even if its method has no effects.
func TestAsk_ConnectionBreaks(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		if seen.Add(1) > 1 { // on a connection that is used again
			panic(http.ErrAbortHandler)
		}
	})
	w.ask = func(context.Context, *egress.Receipt, string, []byte) (bool, string, error) { return true, "", nil }
	for i, want := range []int{200, 502} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://asked.test/", nil)
		if status, body := do(w.client(), r); status != want || seen.Load() != int32(i+1) {
			t.Errorf("%d %s, sent %d times", status, body, seen.Load())
		}
	}
}
