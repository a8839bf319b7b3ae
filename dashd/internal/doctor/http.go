package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

// askTimeout bounds each question over HTTP.
const askTimeout = 3 * time.Second

// answer is what a daemon answers over HTTP.
type answer struct {
	Endpoint
	at     string   // the URL or the socket
	status int      // of /readyz, 0 if it does not answer
	lines  []string // of /readyz
	err    error    // why there is no answer
}

// ask asks every daemon whether it is ready, at the same time.
func (e *examination) ask(ctx context.Context) {
	all := make([]answer, len(e.Daemons))
	var group sync.WaitGroup
	for i, endpoint := range e.Daemons {
		group.Go(func() { all[i] = e.askOne(ctx, endpoint) })
	}
	group.Wait()
	e.answers = map[string]answer{}
	for _, a := range all {
		e.answers[a.Name] = a
	}
}

func (e *examination) askOne(ctx context.Context, endpoint Endpoint) answer {
	a := answer{Endpoint: endpoint}
	client, err := daemon.ClientOf(e.Base, endpoint.Name, endpoint.URL)
	if err != nil { // there is no secret, which is reported with the folder
		return a
	}
	defer client.HTTP.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var body []byte
	a.status, body, a.err = client.Get(ctx, "/readyz")
	a.at, a.lines = client.String(), strings.Split(strings.TrimSpace(string(body)), "\n")
	return a
}

func isPortTaken(line string) bool { return strings.HasPrefix(line, daemon.PortTaken) }

// unready reports what the daemons answered.
func (e *examination) unready() {
	for _, endpoint := range e.Daemons {
		name, a := endpoint.Name, e.answers[endpoint.Name]
		// On a database that machines share, a daemon without a URL may run on another one.
		elsewhere := endpoint.URL == "" && store.IsServer(e.Base.Database())
		switch {
		case httpx.IsForeign(a.err):
			e.Refuse("secret-differs", a.err.Error(), "give all daemons the same ARIZUKO_SECRET, and let "+
				strings.ToUpper(name)+"_URL be where "+name+" listens")
		case a.status == 0 && e.alive(name) && !elsewhere:
			e.Problem("unreachable", name+" runs but does not answer at "+a.at,
				e.awaken(name)+"if it runs on another machine, set "+strings.ToUpper(name)+"_URL; else restart "+name)
		case a.status == 0 || e.schema:
		case e.says(name, store.ErrLocked.Error()) && e.Has("database-locked"),
			e.says(name, store.ErrFull.Error()) && e.Has("disk-full"):
		case a.status == http.StatusServiceUnavailable && e.standsBy(a):
			e.looked(strings.Join(a.lines, "; "))
		case a.status == http.StatusOK && slices.ContainsFunc(a.lines, isPortTaken):
			e.Problem("port-taken", name+": "+a.lines[slices.IndexFunc(a.lines, isPortTaken)],
				fmt.Sprintf("end that process, or set %s_ADDR to another port; %s works meanwhile and tries again",
					strings.ToUpper(name), name))
		case a.status != http.StatusOK:
			e.Problem("not-ready", name+" is not ready: "+strings.Join(a.lines, "; "),
				"it continues by itself once that is repaired; its log says more")
		}
	}
}
