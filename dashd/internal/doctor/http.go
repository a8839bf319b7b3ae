package doctor

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// askTimeout bounds each question over HTTP.
const askTimeout = 3 * time.Second

// answer is what a daemon answers over HTTP.
type answer struct {
	Endpoint
	status  int      // of /readyz, 0 if it does not answer
	lines   []string // of /readyz
	refused bool     // it does not accept the shared secret
}

// ask asks every daemon whether it is ready, at the same time.
func (e *examination) ask(ctx context.Context) {
	client := &http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}, // no proxy: the secret goes to the daemons only
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	all := make([]answer, len(e.Daemons))
	var group sync.WaitGroup
	for i, endpoint := range e.Daemons {
		group.Go(func() {
			a := answer{Endpoint: endpoint}
			var body string
			a.status, body = e.get(ctx, client, string(endpoint.URL)+"/readyz")
			a.lines = strings.Split(strings.TrimSpace(body), "\n")
			if a.status != 0 && endpoint.Private != "" && e.secret != "" {
				status, _ := e.get(ctx, client, string(endpoint.URL)+endpoint.Private)
				a.refused = status == http.StatusUnauthorized
			}
			all[i] = a
		})
	}
	group.Wait()
	e.answers = map[string]answer{}
	for _, a := range all {
		e.answers[a.Name] = a
	}
}

// get returns the status, 0 for no answer, and the beginning of the body.
func (e *examination) get(ctx context.Context, client *http.Client, url string) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, ""
	}
	req.Header.Set("Accept", "application/json")
	if e.secret != "" {
		req.Header.Set("Authorization", "Bearer "+e.secret)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 8<<10)) // of a broken answer the beginning
	return res.StatusCode, string(body)
}

// unready reports what the daemons answered.
func (e *examination) unready() {
	for _, endpoint := range e.Daemons {
		name, a := endpoint.Name, e.answers[endpoint.Name]
		variable := strings.ToUpper(name)
		switch {
		case a.status == 0 && e.alive(name) && !endpoint.Local:
			e.problem("unreachable", name+" runs but does not answer at "+string(endpoint.URL),
				e.awaken(name)+"if it listens elsewhere, set "+variable+"_URL or "+variable+"_ADDR; else restart "+name)
		case a.status == 0 || e.schema:
		case a.refused && e.rows != nil && !e.alive(name):
			e.problem("port-taken", string(endpoint.URL)+" belongs to another instance: it does not accept the shared secret, and "+name+" has no heartbeat here",
				"stop that instance, or set "+variable+"_ADDR to a free port; if it is this one, start it with this ARIZUKO_DATA")
		case a.refused:
			e.refused("secret-differs", name+" does not accept the shared secret", "give all daemons the same ARIZUKO_SECRET, or the same data folder, and restart "+name)
		case a.status == http.StatusServiceUnavailable && e.standsBy(a):
			e.fact(strings.Join(a.lines, "; "))
		case a.status == http.StatusServiceUnavailable:
			e.problem("not-ready", name+" is not ready: "+strings.Join(a.lines, "; "), "it continues by itself once that is repaired; its log says more")
		case a.status != http.StatusOK:
			e.problem("unreachable", string(endpoint.URL)+" is not "+name+": "+http.StatusText(a.status), "another program listens there: set "+variable+"_URL or "+variable+"_ADDR")
		}
	}
}
