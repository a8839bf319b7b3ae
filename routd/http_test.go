package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/routeapi"
)

// ask makes a request with the shared secret.
func (s *service) ask(t testing.TB, method, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.Base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := s.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(content))
}

// must makes a request and fails the test unless it is answered with status.
func (s *service) must(t testing.TB, status int, method, path, body string) string {
	t.Helper()
	got, answer := s.ask(t, method, path, body)
	if got != status {
		t.Fatalf("%s %s %.200s: %d, want %d\n%s", method, path, body, got, status, answer)
	}
	return answer
}

func TestHTTP_WrongSecret_Unauthorized(t *testing.T) {
	s := serve(t)
	for _, call := range []string{
		"POST /v1/resolve", "GET /v1/routes", "POST /v1/routes", "PUT /v1/routes/1", "DELETE /v1/routes/1",
		"PUT /v1/routes", "POST /v1/routes/test", "GET /v1/access", "GET /v1/engagement", "POST /v1/engagement",
		"GET /v1/groups", "POST /v1/groups", "GET /v1/groups/a/b", "PUT /v1/groups/a", "DELETE /v1/groups/a",
	} {
		method, path, _ := strings.Cut(call, " ")
		stranger := httpx.NewClient("routd", s.Base, "guess").AcceptUnsigned()
		defer stranger.HTTP.CloseIdleConnections()
		if err := stranger.Do(t.Context(), method, path, map[string]string{}, nil); apierr.KindOf(err) != apierr.Unauthorized {
			t.Errorf("%s: %v", call, err)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		res, err := s.HTTP.Get(s.Base + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestTable_ChangedBySQL_Reloaded(t *testing.T) {
	s := serve(t)
	folder := func() string {
		t.Helper()
		var response routeapi.Response
		request := routeapi.Request{Items: []routeapi.Item{{ID: 1, ChatJID: "telegram:7"}}}
		if err := s.Do(t.Context(), "POST", routeapi.Path, request, &response); err != nil {
			t.Fatal(err)
		}
		return response.Items[0].Folder
	}
	s.shell(t, `INSERT INTO routes (seq, match, target) VALUES (1, '', 'acme'), (0, 'platfrom=x', 'builtin:drop'),
		(0, 'sender=Ann', 'builtin:drop'), (0, 'sender_name=telegram:42', 'builtin:drop')`)
	<-s.gated.C()
	if got := folder(); got != "" {
		t.Errorf("a route to nowhere leads to %s", got)
	}
	ready := s.must(t, 200, "GET", "/readyz", "")
	for _, want := range []string{"ok\n", "route 1 matches nothing: folder acme is not registered", "route 2 matches nothing: match: unknown key",
		`route 3 matches nothing: match: sender: "Ann" is not an id`, `route 4 matches nothing: match: sender_name: "telegram:42" looks like an id`} {
		if !strings.Contains(ready, want) {
			t.Errorf("no %q in /readyz:\n%s", want, ready)
		}
	}
	s.shell(t, `BEGIN IMMEDIATE; INSERT INTO registered_groups (folder, created_at) VALUES ('acme', 0); DELETE FROM routes WHERE id > 1; COMMIT`)
	<-s.gated.C()
	if got := folder(); got != "acme" {
		t.Errorf("folder %q, want acme", got)
	}
	if got := s.must(t, 200, "GET", "/readyz", ""); got != "ok" {
		t.Errorf("readyz %q", got)
	}
	s.shell(t, `UPDATE routes SET impulse_config = '{"broken'`)
	<-s.gated.C()
	if got := folder(); got != "" {
		t.Errorf("a route with a broken config leads to %s", got)
	}
	if got := s.must(t, 200, "GET", "/v1/routes", ""); !strings.Contains(got, `"impulse_config":"{\"broken"`) {
		t.Errorf("the broken row can't be read: %s", got)
	}
}

func TestHTTP_Change_CountsOnceGatedIsPoked(t *testing.T) {
	s := serve(t)
	for i := range 20 {
		s.must(t, 201, "POST", "/v1/groups", fmt.Sprintf(`{"folder":"g%d"}`, i))
		<-s.gated.C()
		got := s.must(t, 200, "POST", routeapi.Path, fmt.Sprintf(`{"items":[{"id":1,"chat_jid":"web:g%d"}]}`, i))
		if !strings.Contains(got, `"action":"trigger"`) {
			t.Fatalf("group %d is not in force: %s", i, got)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	s := serve(b)
	s.must(b, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	fill(b, s.data, 10_000)
	<-s.gated.C() // the group
	<-s.gated.C() // the routes
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			var request routeapi.Request
			for i := range n {
				request.Items = append(request.Items, routeapi.Item{
					ID: int64(i), ChatJID: fmt.Sprintf("telegram:-%d", 9999-i), Sender: "telegram:7", SenderName: "Ann", Verb: "mention",
				})
			}
			body, err := json.Marshal(request)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if got := s.must(b, 200, "POST", routeapi.Path, string(body)); !bytes.Contains([]byte(got), []byte(`"route"`)) {
					b.Fatal(got)
				}
			}
		})
	}
}
