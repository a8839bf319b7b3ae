package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// fakeOnbod opens requests as onbod does, in the same database.
type fakeOnbod struct {
	*httptest.Server
	st *store.Store

	mu      sync.Mutex
	answer  string // instead of opening one: rejected, limited, or the kind of an error
	asked   []onboardapi.Ask
	current int // calls that are not answered yet
	most    int
	hang    chan struct{} // calls are answered once it is closed; nil: at once
}

// withOnbod gives the harness an onbod, and a routd that has no route.
func withOnbod(t *testing.T) (*harness, *fakeOnbod) {
	h := newHarness(t)
	h.routd.route(unrouted)
	o := &fakeOnbod{st: h.st}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	h.onbod = o.URL
	h.restart()
	return h, o
}

// set changes how calls are answered from here on.
func (o *fakeOnbod) set(answer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

func (o *fakeOnbod) calls() []onboardapi.Ask {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

func (o *fakeOnbod) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body onboardapi.Ask
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/requests" {
		httpx.Error(w, apierr.New(apierr.NotFound, "%s %v", r.URL.Path, err))
		return
	}
	o.mu.Lock()
	o.asked = append(o.asked, body)
	o.current++
	o.most = max(o.most, o.current)
	answer, hang, code := o.answer, o.hang, fmt.Sprintf("ABCD-%04d", len(o.asked))
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.current--
	}()
	if hang != nil {
		<-hang
	}
	switch answer {
	case "":
		httpx.JSON(w, http.StatusOK, o.open(r.Context(), &body, code))
	case "rejected", "limited":
		httpx.JSON(w, http.StatusOK, onboardapi.Asked{State: factrows.RequestState(answer)})
	case "approved":
		httpx.JSON(w, http.StatusOK, onboardapi.Asked{State: factrows.RequestState(answer)})
	case "nginx":
		http.Error(w, "nginx", http.StatusMethodNotAllowed)
	case "tls":
		http.Error(w, "Client sent an HTTP request to an HTTPS server.", http.StatusBadRequest)
	default:
		httpx.Error(w, apierr.New(apierr.Kind(answer), "no"))
	}
}

func (o *fakeOnbod) open(ctx context.Context, body *onboardapi.Ask, code string) onboardapi.Asked {
	if r, err := factrows.PendingRequest(ctx, o.st.Reader, body.ChatJID); err == nil && r != nil {
		return onboardapi.Asked{Code: r.Code, State: "pending"}
	}
	err := o.st.Write(ctx, func(tx *store.Tx) error {
		return storetest.PutRequest(tx, &factrows.Request{Code: code, ChatJID: body.ChatJID, Kind: body.Kind, Sender: body.Sender, CreatedAt: 1})
	})
	if err != nil {
		return onboardapi.Asked{State: "limited"}
	}
	return onboardapi.Asked{Code: code, Created: true, State: "pending"}
}
