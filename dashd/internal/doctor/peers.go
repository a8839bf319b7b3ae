package doctor

import (
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
)

// Peers is where the other daemons listen.
type Peers struct {
	GatedAddr config.Addr `env:"GATED_ADDR" envDefault:"127.0.0.1:8080"`
	GatedURL  config.URL  `env:"GATED_URL"`
	RoutdAddr config.Addr `env:"ROUTD_ADDR" envDefault:"127.0.0.1:8081"`
	RoutdURL  config.URL  `env:"ROUTD_URL"`
	OnbodAddr config.Addr `env:"ONBOD_ADDR" envDefault:"127.0.0.1:8082"`
	OnbodURL  config.URL  `env:"ONBOD_URL"`
	TeledAddr config.Addr `env:"TELED_ADDR" envDefault:"127.0.0.1:8091"`
	DiscdAddr config.Addr `env:"DISCD_ADDR" envDefault:"127.0.0.1:8092"`
	SlakdAddr config.Addr `env:"SLAKD_ADDR" envDefault:"127.0.0.1:8093"`
}

// Endpoints returns what to ask of each, of further accounts those with an address in the environment.
func (p Peers) Endpoints(environ []string) []Endpoint {
	all := []Endpoint{
		{Name: "routd", URL: p.RoutdURL.Or(p.RoutdAddr), Private: "/v1/groups"},
		{Name: "gated", URL: p.GatedURL.Or(p.GatedAddr), Private: "/v1/turns?state=running"},
		{Name: "onbod", URL: p.OnbodURL.Or(p.OnbodAddr), Private: "/v1/requests"},
		{Name: "teled", URL: p.TeledAddr.URL(), Local: true},
		{Name: "discd", URL: p.DiscdAddr.URL(), Local: true},
		{Name: "slakd", URL: p.SlakdAddr.URL(), Local: true},
	}
	accounts, _ := daemon.Accounts(environ) // invalid ones are reported by environment
	for i := range accounts {
		var addr config.Addr
		if err := addr.UnmarshalText([]byte(accounts[i].Variable(accounts[i].AddrVariable()))); err == nil && addr != "" {
			all = append(all, Endpoint{Name: accounts[i].Daemon, URL: addr.URL(), Local: true})
		}
	}
	return all
}
