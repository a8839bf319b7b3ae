package events

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
)

func TestListen_FewSessionsLeft_Waits(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v9/gateway/bot" {
			t.Errorf("unexpected call of %s", r.URL)
		}
		fmt.Fprint(w, `{"url":"ws://127.0.0.1:1","shards":1,"session_start_limit":{"total":1000,"remaining":49,"reset_after":7200000,"max_concurrency":1}}`)
	}))
	defer api.Close()
	err := NewListener(discordapi.NewClient(api.URL, "token", adapter.NewCallClient()), nil, "token").Listen(t.Context(), nil)
	var f *adapter.Failure
	if !errors.As(err, &f) || f.After != 2*time.Hour || !strings.Contains(err.Error(), "49 times") {
		t.Errorf("%v", err)
	}
}
