package nettest_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/adapter/adaptertest/nettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers with what it is sent, and counts requests.
type echo struct{ calls atomic.Int32 }

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	e.calls.Add(1)
	_, _ = w.Write(body)
}

// post returns the answer of a server.
func post(t *testing.T, c *http.Client, to, text string) (answer string, status int, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), res.StatusCode, err
}

func TestNetwork_WithoutOutage_CarriesRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nettest.Serve(t, &echo{})
		c := adapter.Network{Dial: n.Dial, TLS: n.TLS()}.CallClient()
		large := strings.Repeat("x", 9<<20) // more than a connection holds
		for _, to := range []string{"https://a.test/", "http://b.test/"} {
			for _, text := range []string{"hello", large} {
				if answer, _, err := post(t, c, to, text); err != nil || answer != text {
					t.Errorf("%s: %d bytes, %v", to, len(answer), err)
				}
			}
		}
		if n.Dials() != 2 {
			t.Errorf("%d connections to two ports", n.Dials())
		}
		if _, _, err := post(t, c, "https://a.test:8443/", ""); !errors.Is(err, adapter.ErrUnsent) {
			t.Errorf("a port without a server: %v", err)
		}
	})
}

func TestNetwork_Outage_FailsCallsUntilItsEnd(t *testing.T) {
	for _, tt := range []struct {
		outage  adaptertest.OutageKind
		unsent  bool
		carried bool
		took    time.Duration
	}{
		{adaptertest.Refusing, true, false, 0},
		{adaptertest.Silent, true, false, adapter.ConnectTimeout}, // of the TLS handshake
		{adaptertest.ResettingTLS, true, false, 0},
		{adaptertest.Unanswering, false, false, 10 * time.Second},
		{adaptertest.CuttingRequests, false, false, 0},
		{adaptertest.CuttingAnswers, false, true, 0},
	} {
		t.Run(string(tt.outage), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &echo{}
				n := nettest.Serve(t, e)
				c := adapter.Network{Dial: n.Dial, TLS: n.TLS()}.CallClient()
				n.SetOutage(adaptertest.Outage{Kind: tt.outage})
				began := time.Now()
				_, _, err := post(t, c, "https://a.test/", "hello")
				if err == nil || errors.Is(err, adapter.ErrUnsent) != tt.unsent || time.Since(began).Truncate(10*time.Millisecond) != tt.took {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				if carried := e.calls.Load() == 1; carried != tt.carried {
					t.Errorf("carried out: %t", carried)
				}
				n.SetOutage(adaptertest.Outage{})
				if answer, _, err := post(t, c, "https://a.test/", "hello"); answer != "hello" {
					t.Errorf("after the outage: %q, %v", answer, err)
				}
			})
		})
	}
}

// A call on a connection that was open when the network went silent may have arrived; pings end it.
func TestNetwork_SilentOpenConnection_IsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nettest.Serve(t, &echo{})
		c := adapter.Network{Dial: n.Dial, TLS: n.TLS()}.CallClient()
		if _, _, err := post(t, c, "https://a.test/", "first"); err != nil {
			t.Fatal(err)
		}
		n.SetOutage(adaptertest.Outage{Kind: adaptertest.Silent})
		if _, _, err := post(t, c, "https://a.test/", "second"); err == nil || errors.Is(err, adapter.ErrUnsent) {
			t.Errorf("on the silent connection: %v", err)
		}
		n.SetOutage(adaptertest.Outage{})
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		if _, _, err := post(t, c, "https://a.test/", "third"); err != nil {
			t.Errorf("after the outage: %v", err)
		}
	})
}

func TestNetwork_Page_IsHTML(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nettest.Serve(t, &echo{})
		c := adapter.Network{Dial: n.Dial, TLS: n.TLS()}.CallClient()
		n.SetOutage(adaptertest.Outage{Kind: adaptertest.Paging, Status: 429, RetryAfter: 7 * time.Second})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 429 || res.Header.Get("Retry-After") != "7" || !strings.Contains(string(body), "<html>") {
			t.Errorf("%s %v, %s, %v", res.Status, res.Header, body, err)
		}
	})
}
