package login_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestAttempts_PerAddress_Limited(t *testing.T) {
	h := open(t, password)
	for range 20 { // success is not counted
		entered(t, h.post("open sesame", nil), page)
	}
	for range 5 {
		refused(t, h.post("x", nil), 403, "not the password")
	}
	w := h.post("open sesame", nil)
	refused(t, w, 429, "Try again in 10 s")
	if got := w.Header().Get("Retry-After"); got != "10" {
		t.Errorf("Retry-After %q", got)
	}
	spoofed := func(r *http.Request) {
		r.Header.Set("X-Forwarded-For", "198.51.100.7")
		r.Header.Set("X-Real-IP", "198.51.100.7")
		r.Header.Set("Forwarded", "for=198.51.100.7")
		r.RemoteAddr = "192.0.2.1:9"
	}
	refused(t, h.post("open sesame", spoofed), 429, "Too many")
	entered(t, h.post("open sesame", from("198.51.100.7:1")), page)
	if w := h.get("/login"); w.Code != 200 {
		t.Errorf("the form itself: %d", w.Code)
	}

	h.now = h.now.Add(9 * time.Second)
	refused(t, h.post("open sesame", nil), 429, "Try again in 1 s")
	h.now = h.now.Add(time.Second)
	entered(t, h.post("open sesame", nil), page)
	refused(t, h.post("x", nil), 403, "not the password")
	refused(t, h.post("x", nil), 429, "Too many")
	h.now = h.now.Add(time.Hour)
	for range 5 {
		refused(t, h.post("x", nil), 403, "not the password")
	}
	refused(t, h.post("x", nil), 429, "Too many")
}

func TestAttempts_RetryAfter_Suffices(t *testing.T) {
	h := open(t, password)
	for range 5 {
		h.post("x", nil)
	}
	for step := range 30 {
		h.now = h.now.Add(time.Duration(step) * 77 * time.Millisecond)
		w := h.post("x", nil)
		if w.Code != 429 {
			continue
		}
		seconds, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(time.Duration(seconds) * time.Second)
		refused(t, h.post("x", nil), 403, "not the password")
	}
}

func TestAttempts_Tokens_Limited(t *testing.T) {
	h := open(t, nil)
	link := h.newLink()
	for range 5 {
		refused(t, h.get("/login?token=guess&next="+page), 403, "next="+page)
	}
	refused(t, h.get(link), 429, "Too many")
	h.now = h.now.Add(10 * time.Second)
	entered(t, h.get(link), "/chat/") // and it was not used up
}

func TestAttempts_SameNetwork_OneAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		one, other string
		same       bool
	}{
		"ports":          {"192.0.2.9:1", "192.0.2.9:2", true},
		"IPv4":           {"192.0.2.9:1", "192.0.2.10:1", false},
		"IPv6 network":   {"[2001:db8:0:1::1]:1", "[2001:db8:0:1:ffff::2]:2", true},
		"IPv6 networks":  {"[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", false},
		"IPv6 zones":     {"[fe80::1%eth0]:1", "[fe80::1%x]:1", true},
		"mapped":         {"192.0.2.9:1", "[::ffff:192.0.2.9]:1", true},
		"mapped, others": {"[::ffff:192.0.2.8]:1", "[::ffff:192.0.2.9]:1", false},
		"no addresses":   {"@", "", true},
	} {
		h := open(t, password)
		for range 5 {
			h.post("x", from(tc.one))
		}
		if same := h.post("x", from(tc.other)).Code == 429; same != tc.same {
			t.Errorf("%s: same = %v", name, same)
		}
	}
}

func TestAttempts_Overall_Limited(t *testing.T) {
	h := open(t, password)
	for i := range 50 {
		refused(t, h.post("x", from(fmt.Sprintf("198.51.100.%d:1", i))), 403, "not the password")
	}
	refused(t, h.post("open sesame", from("203.0.113.1:1")), 429, "Try again in 1 s")
	h.now = h.now.Add(time.Second)
	entered(t, h.post("open sesame", from("203.0.113.1:1")), page)
}

func TestAttempts_Concurrent_Limited(t *testing.T) {
	h := open(t, password)
	var wg sync.WaitGroup
	codes := make(chan int, 100)
	for range cap(codes) {
		wg.Go(func() { codes <- h.post("x", nil).Code })
	}
	wg.Wait()
	close(codes)
	failed := 0
	for code := range codes {
		if code == http.StatusForbidden {
			failed++
		}
	}
	if failed != 5 {
		t.Errorf("%d tries were judged", failed)
	}
}
