package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/httpx"
)

// TestPlanOutages_EverySite_HasEveryKind keeps the table whole: a new adapter or kind must be in it.
func TestPlanOutages_EverySite_HasEveryKind(t *testing.T) {
	planned := planOutages(sitesOf(newPlatforms(), newWebNetwork(nil)), seeded(1))
	count := map[string]int{}
	for _, o := range planned {
		count[o.site.name+" "+o.kind.String()]++
	}
	kinds := []string{"refuses connections", "resets connections", "hangs", "answers pages of 502", "answers pages of 503"}
	sites := []string{"telegram", "discord", "slack", "web"}
	for _, site := range sites {
		for _, kind := range kinds {
			if n := count[site+" "+kind]; n != 1 {
				t.Errorf("%s %s %d times", site, kind, n)
			}
		}
	}
	if len(planned) != len(sites)*len(kinds) {
		t.Errorf("%d outages, want %d: %v", len(planned), len(sites)*len(kinds), count)
	}
}

func TestSitesOf_HaveEveryAdapter(t *testing.T) {
	platforms := newPlatforms()
	adapters := []string{webDaemon}
	for _, p := range platforms {
		adapters = append(adapters, p.Info().Daemon)
	}
	for _, name := range daemons {
		if delivers := slices.Contains(pathPoints[name], fp.Sending); delivers != slices.Contains(adapters, name) {
			t.Errorf("%s delivers: %t; sites are those of %v", name, delivers, adapters)
		}
	}
	if all := sitesOf(platforms, newWebNetwork(nil)); len(all) != len(adapters) {
		t.Errorf("%d sites of %v", len(all), adapters)
	}
}

func TestPlanDisruptions_Round_HasEveryKindAndDaemon(t *testing.T) {
	round := planDisruptions(seeded(1))
	for _, kind := range []string{"kill", "stop", "hang"} {
		for _, name := range daemons {
			if !slices.Contains(round, disruption{kind, name}) {
				t.Errorf("no %s of %s", kind, name)
			}
		}
	}
	for _, kind := range []string{"clock back", "clock forward"} {
		if !slices.Contains(round, disruption{kind: kind}) {
			t.Errorf("no %s", kind)
		}
	}
	if slices.Equal(round, planDisruptions(seeded(2))) {
		t.Error("rounds of two seeds have the same order")
	}
}

// TestSetOutage_EachKind_IsWhatClientsSee tries each kind on each platform with one request.
func TestSetOutage_EachKind_IsWhatClientsSee(t *testing.T) {
	for _, p := range newPlatforms() {
		name := p.Info().Platform
		env, err := p.Serve(fmt.Sprintf("127.91.%d.%d", os.Getpid()>>8&255, 1+os.Getpid()%254)) // the ports are fixed
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		i := slices.IndexFunc(env, func(v string) bool { return strings.Contains(v, "http://") })
		_, base, _ := strings.Cut(env[i], "=")
		checkOutages(t, name, p, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, base)
	}
}

func TestWebNetwork_EachKind_IsWhatClientsSee(t *testing.T) {
	var got atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer server.Close()
	client := httpx.NewClient("dashd", server.URL, "").HTTP
	n := newWebNetwork(patient{client.Transport})
	client.Transport = n
	checkOutages(t, "web", n, client, server.URL)
	if want := int64(2*len(outageKinds()) - 1); got.Load() != want { // one answered request after each, and one lost answer but of refuses
		t.Errorf("%d requests arrived, want %d", got.Load(), want)
	}
}

// patient carries a request out though its client has given up.
type patient struct{ http.RoundTripper }

func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	return p.RoundTripper.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
}

func checkOutages(t *testing.T, name string, n chatsim.Network, client *http.Client, base string) {
	t.Helper()
	for _, kind := range outageKinds() {
		if err := setOutage(n, kind, true); err != nil {
			t.Fatal(err)
		}
		if got := request(t, client, base, kind); got != kind {
			t.Errorf("%s: %v while it %s", name, got, kind)
		}
		if err := setOutage(n, kind, false); err != nil {
			t.Fatal(err)
		}
		if got := request(t, client, base, answers); got != answers {
			t.Errorf("%s: %v after it %s", name, got, kind)
		}
	}
}

// answers is the outageKind of a server that is well.
const answers outageKind = -1

// request returns what a request meets. It gives up only where it is to hang: a busy machine answers late.
func request(t *testing.T, client *http.Client, base string, want outageKind) outageKind {
	t.Helper()
	ctx := t.Context()
	if want == hangs {
		limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return refuses
	case errors.As(err, &timeout) && timeout.Timeout():
		return hangs
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return resets
	case err != nil:
		t.Fatal(err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		return outageKind(res.StatusCode)
	}
	return answers
}
