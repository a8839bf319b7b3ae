package login_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAttempts_WrongPassword_Delayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, password)
		for range 3 {
			start := time.Now()
			refused(t, h.post("x", nil), 403, "not the password")
			if took := time.Since(start); took < time.Second || took > time.Second+2*time.Millisecond {
				t.Errorf("a wrong one took %s", took)
			}
			start = time.Now()
			entered(t, h.post("open sesame", nil), page)
			if took := time.Since(start); took > 2*time.Millisecond {
				t.Errorf("the right one took %s", took)
			}
		}
	})
}

// flood posts wrong passwords at once and returns how long each took, once all are answered.
func (h *fixture) flood(count int, addr func(i int) string) (took func() []time.Duration) {
	var wg sync.WaitGroup
	all := make([]time.Duration, count)
	for i := range count {
		wg.Go(func() {
			start := time.Now()
			refused(h.t, h.post("x", from(addr(i))), 403, "not the password")
			all[i] = time.Since(start)
		})
	}
	return func() []time.Duration {
		wg.Wait()
		return all
	}
}

func TestAttempts_Flood_RightPasswordGetsIn(t *testing.T) {
	for name, addr := range map[string]func(int) string{
		"one address":    func(int) string { return visitor },
		"many addresses": func(i int) string { return fmt.Sprintf("198.51.100.%d:1", i%250) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := open(t, password)
				const count = 500
				took := h.flood(count, addr)
				synctest.Wait()
				start := time.Now()
				entered(t, h.post("open sesame", nil), page)
				if waited := time.Since(start); waited > count*2*time.Millisecond {
					t.Errorf("the right password waited %s", waited)
				}
				delayed := 0
				for _, each := range took() {
					if each >= time.Second {
						delayed++
					}
				}
				if delayed < 100 || delayed > 210 { // 100 at a time
					t.Errorf("%d of the wrong ones were delayed", delayed)
				}
			})
		})
	}
}

func TestAttempts_Comparisons_Spaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, password)
		start := time.Now()
		h.flood(3000, func(int) string { return visitor })()
		if took := time.Since(start); took < 6*time.Second {
			t.Errorf("3000 guesses took %s", took)
		}
	})
}

func TestAttempts_ClientGone_Forgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, password)
		ctx, cancel := context.WithCancel(t.Context())
		for range 500 {
			go h.post("x", func(r *http.Request) { *r = *r.WithContext(ctx) })
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		start := time.Now()
		entered(t, h.post("open sesame", nil), page)
		if waited := time.Since(start); waited > 10*time.Millisecond {
			t.Errorf("the right password waited %s", waited)
		}
	})
}

func TestAttempts_WrongLinks_NotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, nil)
		start := time.Now()
		link := h.newLink()
		for i := range 200 {
			w := h.do(http.MethodGet, "/login?token=guess&next="+page, nil, from(fmt.Sprintf("127.0.0.%d:1", i/8)))
			refused(t, w, 403, "next="+page)
		}
		entered(t, h.get(link), "/chat/")
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAttempts_Log_Bounded(t *testing.T) {
	h := open(t, nil)
	for range 200 {
		h.get("/login?token=guess")
	}
	h.now = h.now.Add(10 * time.Second)
	h.get("/login?token=guess")
	if n := strings.Count(h.log.String(), "login failed"); n != 21 || !strings.Contains(h.log.String(), "count=181") {
		t.Errorf("%d lines:\n%s", n, h.log.String())
	}
}
