package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

// askTimeout bounds each question over HTTP.
const askTimeout = 3 * time.Second

// answer is the answer of a daemon over HTTP.
type answer struct {
	Endpoint
	at     string   // the URL or the socket
	status int      // of /readyz, 0 if it does not answer
	lines  []string // of /readyz
	err    error    // why there is no answer
}

// answers are those of all daemons, in the order of their endpoints.
type answers []answer

// ask asks every daemon whether it is ready, at the same time.
func ask(ctx context.Context, base config.Base, endpoints []Endpoint) answers {
	all := make(answers, len(endpoints))
	var group sync.WaitGroup
	for i, endpoint := range endpoints {
		group.Go(func() { all[i] = askOne(ctx, base, endpoint) })
	}
	group.Wait()
	return all
}

// of is the answer of a daemon, the zero value if it was not asked.
func (all answers) of(name string) answer {
	if i := slices.IndexFunc(all, func(a answer) bool { return a.Name == name }); i >= 0 {
		return all[i]
	}
	return answer{}
}

// saying names the daemons that are not ready for a reason.
func (all answers) saying(reason string) (names []string) {
	for _, a := range all {
		if a.says(reason) {
			names = append(names, a.Name)
		}
	}
	return names
}

// says reports whether a daemon answers that it is not ready for a reason.
func (a answer) says(reason string) bool {
	return a.status == http.StatusServiceUnavailable &&
		slices.ContainsFunc(a.lines, func(line string) bool { return strings.Contains(line, reason) })
}

func askOne(ctx context.Context, base config.Base, endpoint Endpoint) answer {
	a := answer{Endpoint: endpoint}
	client, err := daemon.ClientOf(base, endpoint.Name, endpoint.URL)
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

// reportUnready reports the daemons that are not ready, or do not answer.
func reportUnready(e *examination) {
	for _, a := range e.answers {
		name := a.Name
		taken := slices.IndexFunc(a.lines, func(line string) bool { return strings.HasPrefix(line, daemon.PortTaken) })
		// On a database that machines share, a daemon without a URL may run on another one.
		elsewhere := a.URL == "" && store.IsServer(e.Base.Database())
		switch {
		case httpx.IsForeign(a.err):
			e.Refuse("secret-differs", a.err.Error(), "give all daemons the same ARIZUKO_SECRET, and let "+
				strings.ToUpper(name)+"_URL be where "+name+" listens")
		case a.status == 0 && e.alive(name) && !elsewhere:
			e.Problem("unreachable", name+" runs but does not answer at "+a.at,
				e.locks.awaken(name)+"if it runs on another machine, set "+strings.ToUpper(name)+
					"_URL; else restart "+name)
		case a.status == 0 || e.schema:
		case a.says(store.ErrLocked.Error()) && e.Has("database-locked"),
			a.says(store.ErrFull.Error()) && e.Has("disk-full"):
		case a.status == http.StatusServiceUnavailable && e.Base.DB != "" && a.standsBy():
			e.looked(strings.Join(a.lines, "; "))
		case a.status == http.StatusOK && taken >= 0:
			e.Problem("port-taken", name+": "+a.lines[taken],
				fmt.Sprintf("end that process, or set %s_ADDR to another port; %s works meanwhile and tries again",
					strings.ToUpper(name), name))
		case a.status != http.StatusOK:
			e.Problem("not-ready", name+" is not ready: "+strings.Join(a.lines, "; "),
				"it continues by itself once that is repaired; its log says more")
		}
	}
}

// Endpoints are those of all daemons, further accounts included: at their URLs, or at their sockets.
func Endpoints(urls map[string]config.URL, environ []string) (all []Endpoint) {
	names := daemon.Suite()
	accounts, _ := daemon.Accounts(environ) // invalid ones are reported by environment
	for i := range accounts {
		names = append(names, accounts[i].Daemon)
	}
	for _, name := range names {
		all = append(all, Endpoint{name, urls[name]})
	}
	return all
}
