package httpx

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestBy_ClientSays_ServerReads(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = By(r) }))
	defer server.Close()
	client := NewClient("gated", server.URL, "")
	ask := func(ctx context.Context) string {
		t.Helper()
		if err := client.Do(ctx, http.MethodPost, "/", nil, nil); err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, name := range []string{"", "web:operator"} {
		want := name
		if name == "" {
			want = "api"
		}
		if got := ask(WithBy(t.Context(), name)); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	if got := ask(t.Context()); got != "api" {
		t.Errorf("no name is %q", got)
	}
}
