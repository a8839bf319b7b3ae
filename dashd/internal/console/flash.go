package console

import (
	"crypto/rand"
	"net/url"
	"strings"
	"sync"
	"time"

	"arizuko/dashd/internal/pages"
)

const (
	// flashParameter names the notice that a page shows, in its address.
	flashParameter = "done"
	maxFlashes     = 100
	flashLife      = time.Minute
	maxFlashText   = 2000 // characters
)

// flashes are the results of forms, until the page that shows them is loaded. They are in memory: a restart loses
// notices, no changes.
type flashes struct {
	mu  sync.Mutex
	all map[string]flash
}

type flash struct {
	notice, problem string
	at              time.Time
}

// add returns the address of a page with a notice or a problem.
func (f *flashes) add(next, notice, problem string, now time.Time) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, old := range f.all {
		// One of another request may be a moment younger; one of the future was stored before the clock was set back.
		if now.Sub(old.at).Abs() > flashLife || len(f.all) >= maxFlashes {
			delete(f.all, key)
		}
	}
	if f.all == nil {
		f.all = map[string]flash{}
	}
	key := rand.Text()
	f.all[key] = flash{pages.Cut(notice, maxFlashText), pages.Cut(problem, maxFlashText), now}
	separator := "?"
	if strings.Contains(next, "?") {
		separator = "&"
	}
	return next + separator + url.Values{flashParameter: {key}}.Encode()
}

// take returns a notice or a problem. It stays for a reload until it is too old.
func (f *flashes) take(key string, now time.Time) (notice, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.all[key]
	if now.Sub(found.at) > flashLife {
		return "", ""
	}
	return found.notice, found.problem
}
